-- Audit trails, the order of the tree, and the store's own small files.

create table audit (
    session_id text not null,
    seq integer not null,
    -- Index in the tree. The order of commits is the order of leaves: one place is given with each row.
    leaf integer not null primary key,
    timestamp text not null,
    type text not null,
    workflow_id text,
    hash text not null,
    -- The leaf itself, newline included. Never changed.
    line blob not null,
    -- What must be erasable; NULL where there is none, or no more.
    payload blob,
    unique (session_id, seq)
);

create table files (
    name text not null primary key,
    data blob not null
);
