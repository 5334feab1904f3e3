-- The tables of a store. Bytes that were hashed are kept as they are; the other columns are what listings need.

create table checkpoints (
    workflow_id text not null,
    sequence integer not null,
    uuid text not null,
    timestamp text not null,
    type text not null,
    checksum text not null,
    parent integer not null,
    -- Sequence of the keyframe that the record builds on.
    grp integer not null,
    length integer not null,
    state_bytes integer not null,
    status text not null,
    stage text,
    agent text,
    session text,
    phase integer,
    label text,
    -- A JSON array of SHA-256 names.
    blobs text not null,
    event_seq integer not null,
    schema text not null,
    retry_count integer not null,
    pinned integer not null,
    -- A tombstone: rows are never deleted, their checksums keep the chain checkable.
    pruned integer not null,
    -- The record; NULL once its group was dropped.
    data blob,
    primary key (workflow_id, sequence)
);

create index checkpoints_uuid on checkpoints (uuid);

-- The key of a commit's first event is what two writers race for. The last event of a workflow always stays,
-- if need be without its bytes: it is where the workflow stands.
create table events (
    workflow_id text not null,
    seq integer not null,
    timestamp text not null,
    hash text not null,
    data blob,
    primary key (workflow_id, seq)
);

create table keyframes (
    workflow_id text not null,
    sequence integer not null,
    sha256 text not null,
    length integer not null,
    suffix text not null,
    blobs text not null,
    data blob not null,
    primary key (workflow_id, sequence)
);

create table blobs (
    sha256 text not null primary key,
    data blob not null
);

-- Who refers to a blob; it goes when nobody does.
create table blob_uses (
    sha256 text not null references blobs (sha256),
    workflow_id text not null,
    sequence integer not null,
    kind text not null check (kind in ('record', 'keyframe')),
    primary key (workflow_id, sequence, kind, sha256)
) without rowid;

create index blob_uses_sha256 on blob_uses (sha256);

-- The row stays when a lease is released: tokens only grow.
create table leases (
    workflow_id text not null primary key,
    owner text not null,
    token integer not null,
    expires_at text not null,
    released integer not null
) without rowid;

-- For people who query with SQL: a row for each checkpoint that is kept. The last three columns are JSON, read out
-- of the checkpoint's keyframe if that is plain JSON. They are NULL where a checkpoint is stored as a change since
-- another, or its keyframe is compressed or in another encoding; large values in it are references to blobs.
create view workflow_checkpoints (
    id, workflow_id, timestamp, layer_index, state, dag_structure, execution_config
) as
select
    c.uuid,
    c.workflow_id,
    c.timestamp,
    c.phase,
    json_extract(k.json, '$.state'),
    json_extract(k.json, '$.state.dag_structure'),
    json_extract(k.json, '$.state.execution_config')
from checkpoints as c
left join (
    select workflow_id, sequence, cast(data as text) as json from keyframes
    where suffix = 'json' and json_valid(cast(data as text))
) as k on k.workflow_id = c.workflow_id and k.sequence = c.sequence
where not c.pruned;

-- "Hold": how a store is told from the database of another program.
pragma application_id = 1215261796;
