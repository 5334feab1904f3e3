from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.cli.exits import Exit
from tests.application.insight.test_differences import applied
from tests.cli.conftest import Run, fill


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A store whose checkpoints differ in every way."""
    place = tmp_path / "many"
    texts = [f"message {number}" for number in range(200)]
    with bootstrap.open(str(place)) as service:
        service.create_checkpoint("WF", {"list": texts, "text": "a" * 300, "gone": 1, "n": 1, "same": texts})
        changed = ["new first", *texts[:100], *texts[101:]]
        service.create_checkpoint(
            "WF", {"list": changed, "text": "a" * 300 + "b", "n": True, "same": texts, "k": {}}
        )
        service.create_checkpoint(
            "WF", {"list": changed, "text": "a" * 300 + "b", "n": True, "same": texts, "k": {}}, force=True
        )
    return place


def test_with_one_name_the_checkpoint_before_is_compared(run: Run, store: Path):
    assert run("diff", "WF-1@3", "--store", store).out.splitlines() == [
        "WF-1@2 -> WF-1@3: 3 changes",
        '- context was {"a":1}',
        "~ current_step = 2, was 1",
        '+ messages[2] = {"role":"agent","text":"done"}',
    ]


def test_every_kind_of_change_is_told(run: Run, many: Path):
    lines = run("diff", "WF@1", "WF@2", "--store", many).out.splitlines()
    assert lines[0] == "WF@1 -> WF@2: 6 changes"
    assert set(lines[1:]) == {
        '+ context.list[0] = "new first"',
        '- context.list[101] was "message 100"',
        '~ context.text grew by "b"',
        "- context.gone was 1",
        "~ context.n = true, was 1",
        "+ context.k = {}",
    }


def test_the_other_way_round_is_told_too(run: Run, many: Path):
    lines = run("diff", "WF@2", "WF@1", "--store", many).out.splitlines()
    assert '- context.list[0] was "new first"' in lines
    assert "- context.k was {}" in lines


def test_a_count_for_each_field(run: Run, many: Path):
    lines = run("diff", "WF@1", "WF@2", "--format", "stat", "--store", many).out.splitlines()
    assert lines[1].split() == ["FIELD", "ADDED", "REMOVED", "CHANGED"]
    assert lines[2].split() == ["context", "2", "2", "2"]


def test_operations_for_programs(run: Run, many: Path):
    for args in (("--json",), ("--format", "json")):
        data = run("diff", "WF@1", "WF@2", *args, "--store", many).data
        assert (data["from"], data["to"]) == ("WF@1", "WF@2")
        assert {op["op"] for op in data["operations"]} == {"set", "delete", "splice", "append"}


def test_the_first_checkpoint_is_compared_with_nothing(run: Run, store: Path):
    lines = run("diff", "WF-1@1", "--store", store).out.splitlines()
    assert lines[0].startswith("(nothing) -> WF-1@1")
    assert '+ context = {"a":1}' in lines and not any(line.startswith("~") for line in lines)
    assert run("diff", "WF-1@1", "--json", "--store", store).data["from"] is None


def test_an_object_that_was_replaced_is_told_part_by_part(run: Run, store: Path):
    """Small states are stored as a replacement, which is no answer to what changed."""
    lines = run("diff", "WF-1@1", "WF-1@2", "--store", store).out.splitlines()
    assert "~ current_step = 1, was 0" in lines
    assert '+ messages[1] = {"role":"agent","text":"café ☃"}' in lines
    assert not any("was {" in line for line in lines)


def test_only_what_changed_at_a_path(run: Run, many: Path):
    def shown(pointer: str) -> list[str]:
        return run("diff", "WF@1", "WF@2", "--path", pointer, "--store", many).out.splitlines()[1:]

    assert shown("/context/n") == ["~ context.n = true, was 1"]
    assert shown("/context/list/0") == ['~ context.list[0] = "new first", was "message 0"']
    assert shown("/context/same") == []
    assert shown("/context/gone") == ["- context.gone was 1"]
    assert shown("/context/k") == ["+ context.k = {}"]
    assert shown("/nowhere/at/all") == []


def test_the_exit_code_tells_only_when_asked(run: Run, many: Path):
    assert run("diff", "WF@1", "WF@2", "--store", many).exit_code == 0
    assert run("diff", "WF@1", "WF@2", "--exit-code", "--store", many).exit_code == Exit.DIFFERENT
    same = run("diff", "WF@2", "WF@3", "--exit-code", "--store", many)
    assert (same.exit_code, same.out) == (0, "WF@2 -> WF@3: 0 changes\n")
    assert run("diff", "WF@3", "--format", "stat", "--store", many).out == "WF@2 -> WF@3: 0 changes\n"


def test_checkpoints_of_two_workflows_can_be_compared(run: Run, store: Path):
    lines = run("diff", "WF-1", "WF-2", "--store", store).out.splitlines()
    assert '~ workflow_id = "WF-2", was "WF-1"' in lines
    assert run("diff", "WF-1", "WF-3", "--store", store).exit_code == Exit.NOT_FOUND


def test_points_between_checkpoints_are_compared(run: Run, store: Path):
    lines = run("diff", "WF-1@event:2", "WF-1@2", "--store", store).out.splitlines()
    assert lines[0] == "WF-1@event:2 -> WF-1@2: 3 changes"
    assert lines[1].startswith("- decisions was [{") or lines[3].startswith("- decisions was [{")


def test_a_point_alone_is_compared_with_the_checkpoint_it_starts_from(run: Run, store: Path):
    data = run("diff", "WF-1@event:2", "--store", store, "--json").data
    assert (data["from"], data["to"]) == ("WF-1@1", "WF-1@event:2")
    assert [op["path"] for op in data["operations"]] == [["decisions"]]


def test_a_point_before_the_first_checkpoint_is_compared_with_nothing(run: Run, tmp_path: Path):
    place = tmp_path / "events"
    with bootstrap.open(str(place)) as service:
        service.append_event("WF", "MESSAGE_ADDED", {"message": 1})
        service.append_event("WF", "MESSAGE_ADDED", {})
    result = run("diff", "WF@event:2", "--store", place)
    assert result.out.startswith("(nothing) -> WF@event:2: ")
    assert "note: event 2 (MESSAGE_ADDED) was left out: KeyError: 'message'" in result.err


def test_changes_hang_below_the_places_they_belong_to(run: Run, many: Path):
    lines = run("diff", "WF@1", "WF@2", "--format", "tree", "--store", many).out.splitlines()
    assert lines[:3] == ["WF@1 -> WF@2: 6 changes", "state", "`- context"]
    assert {line[6:] for line in lines[3:]} == {
        '+ list[0] = "new first"',
        '- list[101] was "message 100"',
        '~ text grew by "b"',
        "- gone was 1",
        "~ n = true, was 1",
        "+ k = {}",
    }
    same = run("diff", "WF@1", "WF@1", "--format", "tree", "--store", many).out
    assert same == "WF@1 -> WF@1: 0 changes\n"


def test_what_is_passed_over_is_no_difference(run: Run, many: Path):
    every = ("--ignore", "/context/list", "--ignore", "/context/text", "--ignore", "/context/gone")
    rest = ("--ignore", "/context/n", "--ignore", "/context/k", "--ignore", "/nowhere/x")
    assert run("diff", "WF@1", "WF@2", *every, *rest, "--exit-code", "--store", many).exit_code == Exit.DONE
    result = run("diff", "WF@1", "WF@2", *every, "--exit-code", "--store", many)
    assert result.exit_code == Exit.DIFFERENT and "2 changes" in result.out
    assert run("diff", "WF@1", "WF@2", "--ignore", "", "--store", many).exit_code == Exit.USAGE


def test_a_patch_fits_what_show_prints(run: Run, store: Path):
    patch = run("diff", "WF-1@1", "WF-1@3", "--format", "patch", "--store", store).data
    states = [json.loads(run("show", name, "--state", "--store", store).out) for name in ("WF-1@1", "WF-1@3")]
    assert applied(states[0], patch) == states[1]


def test_a_patch_of_one_place_names_it_from_the_root(run: Run, many: Path):
    args = ("diff", "WF@1", "WF@2", "--format", "patch", "--path", "/context/n", "--store", many)
    assert run(*args).data == [{"op": "replace", "path": "/context/n", "value": True}]


def test_so_long_ago_is_a_point_to_compare_with(run: Run, store: Path):
    assert run("diff", "WF-1@{0s ago}", "WF-1", "--store", store).out.startswith("WF-1@event:")
    refused = run("diff", "WF-1@{soon}", "WF-1", "--store", store)
    assert refused.exit_code == Exit.USAGE and "between braces" in refused.err


def test_a_field_that_only_stands_elsewhere_is_no_change(run: Run, tmp_path: Path):
    with bootstrap.open(tmp_path / "store") as service:
        service.create_checkpoint("WF", {"a": 1, "b": {"x": [1, 2]}, "c": 3, "d": "same"})
        service.create_checkpoint("WF", {"d": "same", "c": 4, "b": {"x": [1, 2]}, "a": 1, "e": 5})
    shown = run("diff", "WF@1", "WF@2", "--store", tmp_path / "store")
    assert shown.out.splitlines() == [
        "WF@1 -> WF@2: 2 changes",
        "~ context.c = 4, was 3",
        "+ context.e = 5",
    ]
    stat = run("diff", "WF@1", "WF@2", "--format", "stat", "--store", tmp_path / "store").out.splitlines()
    assert stat[-1].split() == ["context", "1", "0", "1"]


def test_files_are_compared_in_the_store_they_lie_in(run: Run, store: Path, tmp_path: Path):
    fill(tmp_path / "other")
    [mine], [theirs] = (
        list(place.glob("checkpoints/*/wf-1*/checkpoint_000001.json"))
        for place in (store, tmp_path / "other")
    )
    assert run("diff", mine, mine).exit_code == 0
    refused = run("diff", mine, theirs)
    assert (refused.exit_code, refused.out) == (Exit.NOT_FOUND, "")
    assert "the file is not in this store" in refused.err
    assert run("diff", "WF-1@2", theirs, "--store", store).exit_code == Exit.NOT_FOUND
