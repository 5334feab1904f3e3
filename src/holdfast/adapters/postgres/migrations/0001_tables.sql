-- Texts are compared by their bytes, in every database: ids are never folded, and order is the same everywhere.
-- No table is touched by all commits, and none says where a workflow stands: its last rows do.
-- Numbers stand first, where they need no padding.

-- Columns of fixed width come first: between texts each of them would be padded to a boundary of eight bytes.
create table checkpoints (
    sequence bigint not null,
    parent bigint not null,
    grp bigint not null,
    state_bytes bigint not null,
    event_seq bigint not null,
    phase bigint,
    length integer not null,
    retry_count integer not null,
    pinned boolean not null,
    pruned boolean not null,
    workflow_id text collate "C" not null,
    uuid text collate "C" not null,
    timestamp text collate "C" not null,
    type text not null,
    checksum text collate "C" not null,
    status text not null,
    stage text,
    agent text,
    session text,
    label text,
    blobs text not null,
    schema text not null,
    data bytea,
    primary key (workflow_id, sequence)
);
create index checkpoints_by_uuid on checkpoints (uuid);

create table events (
    seq bigint not null,
    workflow_id text collate "C" not null,
    timestamp text collate "C" not null,
    hash text collate "C" not null,
    data bytea,
    primary key (workflow_id, seq)
);

create table keyframes (
    sequence bigint not null,
    length integer not null,
    workflow_id text collate "C" not null,
    sha256 text collate "C" not null,
    suffix text not null,
    blobs text not null,
    data bytea not null,
    primary key (workflow_id, sequence)
);

create table blobs (
    sha256 text collate "C" primary key,
    data bytea not null
);

-- Who refers to a blob. The foreign key decides between a commit that begins to and a removal at the same moment.
create table blob_uses (
    sha256 text collate "C" not null references blobs,
    workflow_id text collate "C" not null,
    sequence bigint not null,
    kind text collate "C" not null,
    primary key (sha256, workflow_id, sequence, kind)
);
create index blob_uses_by_workflow on blob_uses (workflow_id, sequence);

-- The row stays when a lease is released, so that tokens only grow.
create table leases (
    workflow_id text collate "C" primary key,
    owner text not null,
    token bigint not null,
    expires_at text collate "C" not null,
    released boolean not null
);

-- What retention removes is large and in few rows: the usual fifth of a table would be a long time coming.
alter table checkpoints set (
    autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05
);
alter table events set (autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05);
alter table keyframes set (
    autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05
);
alter table blobs set (autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05);
