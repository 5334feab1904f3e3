-- From here on the bytes of checkpoints, events and audit entries may lack what the columns beside them say: the
-- fields that a line begins with, its hash, an outcome that is the usual one. Rows that are there stay as they
-- are: each tells by its bytes whether it is whole. A program that does not know of this must not read them.

-- The beginnings of UUIDs tell nearly all of them apart; an index of whole ones is twice as large.
drop index checkpoints_by_uuid;
create index checkpoints_by_uuid on checkpoints (substr(uuid, 1, 8));

-- Applies one operation (format, section 4) to a state.
create or replace function checkpoint_changed(state jsonb, operation jsonb) returns jsonb
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
            -- That none is removed goes without saying.
            beyond := at + coalesce((operation -> 'remove')::bigint, 0);
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

-- Rebuilds a state: the newest readable keyframe, then the operations of every record after it.
create or replace function checkpoint_state(of_workflow text, at_sequence bigint) returns jsonb
language plpgsql stable set search_path from current
as $$
declare
    start bigint;
    whole bytea;
    sequence bigint;
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
    for sequence, stored in
        select c.sequence, c.data from checkpoints c
        where c.workflow_id = of_workflow and c.sequence > start and c.sequence <= at_sequence
        order by c.sequence
    loop
        expected := expected + 1;
        -- What follows the line is a payload that is not plain JSON.
        line := convert_from(stored, 'UTF8')::jsonb;
        if line -> 'ops' is null or sequence <> expected then
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
