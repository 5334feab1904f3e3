-- Audit trails, and the small files that are the store's own.

-- The last row of a session is where its trail stands. leaf is the place of an entry in the tree: given once,
-- by whoever integrates, and NULL before. The payload can go without a trace in the line that commits to it.
create table audit (
    seq bigint not null,
    leaf bigint,
    session_id text collate "C" not null,
    timestamp text collate "C" not null,
    type text not null,
    workflow_id text collate "C",
    hash text collate "C" not null,
    line bytea not null,
    payload bytea,
    primary key (session_id, seq)
);
create unique index audit_by_leaf on audit (leaf) where leaf is not null;
create index audit_waiting on audit (session_id, seq) where leaf is null;

create table files (
    name text collate "C" primary key,
    data bytea not null
);

-- Every entry is written twice, the second time with its leaf.
alter table audit set (autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05);
alter table files set (autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05);
