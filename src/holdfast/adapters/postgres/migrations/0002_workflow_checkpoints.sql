-- For people who query with SQL: every checkpoint that is kept, with its whole state.

-- Gives the text that a value stands for: its own, or that of the blob it refers to.
create function checkpoint_text(value jsonb) returns text
language sql stable set search_path from current
as $$
    select case
        when jsonb_typeof(value) = 'string' then value #>> '{}'
        when value ->> '$hf' = 'blob' and value ->> 'kind' = 'str' then (
            select convert_from(data, 'UTF8') from blobs where sha256 = value ->> 'sha256'
        )
    end
$$;

-- Applies one operation (format, section 4) to a state.
create function checkpoint_changed(state jsonb, operation jsonb) returns jsonb
language plpgsql stable set search_path from current
as $$
declare
    path text[] := array(select jsonb_array_elements_text(operation -> 'path'));
    items jsonb;
    at bigint;
    beyond bigint;
begin
    case operation ->> 'op'
        when 'set' then
            if cardinality(path) = 0 then
                return operation -> 'value';
            end if;
            return jsonb_set(state, path, operation -> 'value');
        when 'delete' then
            return state #- path;
        when 'append' then
            return jsonb_set(state, path, to_jsonb(
                checkpoint_text(state #> path) || checkpoint_text(operation -> 'text')
            ));
        when 'splice' then
            items := state #> path;
            at := (operation -> 'at')::bigint;
            beyond := at + (operation -> 'remove')::bigint;
            if at = jsonb_array_length(items) then
                return jsonb_set(state, path, items || (operation -> 'insert'));
            end if;
            return jsonb_set(state, path, (
                select coalesce(jsonb_agg(item order by place), '[]') from (
                    select item, array[0, place] from jsonb_array_elements(items)
                        with ordinality as kept(item, place) where place <= at
                    union all
                    select item, array[1, place] from jsonb_array_elements(operation -> 'insert')
                        with ordinality as new(item, place)
                    union all
                    select item, array[2, place] from jsonb_array_elements(items)
                        with ordinality as kept(item, place) where place > beyond
                ) as all_items(item, place)
            ));
    end case;
end
$$;

-- Puts the texts of blobs in place of the references to them; references to bytes stay.
create function checkpoint_lowered(state jsonb) returns jsonb
language plpgsql stable set search_path from current
as $$
declare
    reference jsonb;
    written text := state::text;
begin
    -- A quote inside a string is written \", so what looks like a reference in the text is one.
    for reference in
        select distinct met
        from jsonb_path_query(state, 'lax $.** ? (@."$hf" == "blob" && @.kind == "str")') as met
    loop
        written := replace(
            written, reference::text, coalesce(to_jsonb(checkpoint_text(reference)), reference)::text
        );
    end loop;
    return written::jsonb;
end
$$;

-- Rebuilds a state: the newest readable keyframe, then the operations of every record after it.
create function checkpoint_state(of_workflow text, at_sequence bigint) returns jsonb
language plpgsql stable set search_path from current
as $$
declare
    start bigint;
    whole bytea;
    stored bytea;
    line jsonb;
    operation jsonb;
    state jsonb;
    expected bigint;
begin
    select k.sequence, k.data into start, whole from keyframes k
    where k.workflow_id = of_workflow and k.sequence <= at_sequence and k.suffix = 'json'
    order by k.sequence desc limit 1;
    if start is null then
        return null;
    end if;
    state := convert_from(whole, 'UTF8')::jsonb -> 'state';
    expected := start;
    for stored in
        select c.data from checkpoints c
        where c.workflow_id = of_workflow and c.sequence > start and c.sequence <= at_sequence
        order by c.sequence
    loop
        expected := expected + 1;
        -- What follows the line is a payload that is not plain JSON.
        line := convert_from(stored, 'UTF8')::jsonb;
        if line -> 'ops' is null or (line -> 'seq')::bigint <> expected then
            return null;
        end if;
        for operation in select jsonb_array_elements(line -> 'ops') loop
            state := checkpoint_changed(state, operation);
        end loop;
    end loop;
    if expected <> at_sequence then
        return null;
    end if;
    return checkpoint_lowered(state);
exception
    -- Bytes that are no JSON, and JSON that jsonb cannot hold.
    when data_exception or program_limit_exceeded then
        return null;
end
$$;

create view workflow_checkpoints as
select
    c.uuid as id,
    c.workflow_id,
    c.timestamp::timestamptz as timestamp,
    c.phase as layer_index,
    s.state,
    s.state -> 'dag_structure' as dag_structure,
    s.state -> 'execution_config' as execution_config
from checkpoints c
-- An aggregate gives one row for certain, so that the state is rebuilt once, and only for queries that look at it.
left join lateral (
    select (array_agg(case when one = 1 then checkpoint_state(c.workflow_id, c.sequence) end))[1] as state
    from (values (1)) as ones(one)
) as s on true
where not c.pruned;

comment on view workflow_checkpoints is
'Checkpoints that are kept, with their whole state, for reading. The bytes that were hashed are in checkpoints, '
'keyframes and blobs. state is NULL where those are not plain JSON: in MessagePack or CBOR, compressed, or with '
'values that jsonb cannot hold (a NUL character). Values beyond JSON are tagged objects with the key $hf; '
'long texts are put in place, long byte strings stay references to their blob. Nothing is verified here: '
'holdfast validate does that.';
