"""The statement of a commit: the same whatever is missing in it, and never a walk through a table."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from holdfast.adapters.postgres import statement
from holdfast.adapters.postgres.batch import Unit
from holdfast.adapters.postgres.statement import Shape
from holdfast.conformance.copying import without_events
from holdfast.conformance.history import History, blob_name
from holdfast.domain.record import Transition


def units(store, count, **parts):
    made = [History(store, f"W{number}").draft(**parts) for number in range(count)]
    return [Unit((commit,), (place,)) for place, commit in enumerate(made)]


def planned(store, built):
    """What the server would do, as nodes with the tables they read."""
    query, values = built
    with store._database.connections.connection() as connection:
        [(plan,)] = connection.read(connection.send(f"explain (format json) {query}", values))
    todo, nodes = [plan[0]["Plan"] if not isinstance(plan, str) else json.loads(plan)[0]["Plan"]], []
    while todo:
        node = todo.pop()
        nodes.append((node["Node Type"], node.get("Relation Name")))
        todo += node.get("Plans", [])
    return nodes


def test_a_commit_alone_sends_values_and_a_group_sends_arrays(store):
    single, _ = statement.build(units(store, 1))
    group, _ = statement.build(units(store, 2))
    assert "unnest" not in single and "values" in single
    assert "unnest" in group


def test_a_number_that_is_missing_does_not_make_another_statement(store):
    [without], [with_phase] = units(store, 1), units(store, 1, phase=2)
    assert statement.build([without])[0] == statement.build([with_phase])[0]
    assert 2 in statement.build([with_phase])[1] and 2 not in statement.build([without])[1]


@pytest.mark.parametrize("count", [1, 8])
def test_no_commit_reads_a_table_from_end_to_end(store, count):
    data = {blob_name(b"b"): b"b"}
    made = units(store, count, keyframe=b"k", blobs=data, transitions=(Transition(9, "failed"),))
    for built in (
        statement.build(made),
        statement.build([replace(u, commits=tuple(without_events(c) for c in u.commits)) for u in made]),
    ):
        scanned = {table for kind, table in planned(store, built) if kind == "Seq Scan"}
        assert scanned == set()


def test_parts_that_are_not_there_are_not_sent():
    bare = statement.text(Shape(is_single=True))
    for word in ("keyframes", "blobs", "blob_uses", "insert into checkpoints", "update"):
        assert word not in bare
    everything = statement.text(Shape(False, True, True, True, True, True, True, True))
    for word in ("keyframes", "blobs", "blob_uses", "insert into checkpoints", "update"):
        assert word in everything
