from __future__ import annotations

from pathlib import Path

from holdfast import bootstrap
from holdfast.cli.exits import Exit
from tests.cli.conftest import Run


def test_a_workflow_starts_from_a_checkpoint_of_another(run: Run, store: Path):
    assert run("fork", "WF-1@2", "WF-9", "--store", store).out == "WF-9@1 starts from WF-1@2\n"
    with bootstrap.open(str(store)) as service:
        assert service.restore_checkpoint("WF-9@1").current_step == 1
        assert len(service.list_checkpoints("WF-1")) == 3


def test_a_workflow_starts_from_a_point_between_checkpoints(run: Run, store: Path):
    data = run("fork", "WF-1@event:2", "WF-9", "--store", store, "--json").data
    assert data == {"id": "WF-9@1", "workflow_id": "WF-9", "forked_from": "WF-1@event:2"}
    shown = run("show", "WF-9", "--store", store, "--json").data
    assert [decision["description"] for decision in shown["state"]["decisions"]] == ["go on"]
    assert shown["checkpoint"]["forked_from"]["event_seq"] == 2
    assert "forked from  WF-1@event:2" in run("show", "WF-9", "--store", store).out
    told = run("audit", "log", "--type", "WORKFLOW_FORKED", "--store", store, "--json").data
    assert told["data"]["from"] == "WF-1@event:2"


def test_a_moment_is_turned_into_the_event_it_means(run: Run, store: Path):
    with bootstrap.open(str(store)) as service:
        moment = service.events("WF-1")[1].timestamp
    data = run("fork", f"WF-1@time:{moment.isoformat()}", "WF-9", "--store", store, "--json").data
    assert data["forked_from"] == "WF-1@event:2"


def test_a_workflow_that_is_there_is_never_written_over(run: Run, store: Path):
    result = run("fork", "WF-1@2", "WF-2", "--store", store)
    assert result.exit_code == Exit.LOCKED
    assert "there is a workflow of that name already" in result.err and "another name" in result.err
    assert run("list", "WF-2", "--store", store, "--json").data["total"] == 1


def test_a_fork_of_a_thread_of_langgraph_is_told_to_be_none(run: Run, store: Path):
    with bootstrap.open(str(store)) as service:
        service.create_checkpoint("langgraph/kelp", {"n": 1})
    assert "copy_thread" in run("fork", "langgraph/kelp@1", "langgraph/k2", "--store", store).err
    assert "copy_thread" not in run("fork", "WF-1@2", "WF-9", "--store", store).err


def test_what_was_mistyped_is_guessed(run: Run, store: Path):
    result = run("fork", "WF-1@9", "WF-9", "--store", store)
    assert result.exit_code == Exit.NOT_FOUND
    assert "WF-1 has checkpoints 1 to 3" in result.err


def test_events_that_do_not_fit_are_told(run: Run, store: Path):
    with bootstrap.open(str(store)) as service:
        service.append_event("WF-1", "MESSAGE_ADDED", {})
    result = run("fork", "WF-1@event:6", "WF-9", "--store", store)
    assert result.exit_code == Exit.DONE
    assert "WF-1@event:6 is without these events: 6 (MESSAGE_ADDED" in result.err


def test_a_fork_may_begin_with_another_state(run: Run, store: Path):
    edits = (
        "--set",
        "/context/a=2",
        "--set",
        '/messages/-={"role": "user"}',
        "--set",
        "/messages/0/text=anew",
    )
    data = run("fork", "WF-1@1", "WF-9", *edits, "--json", "--store", store).data
    assert (data["id"], data["set"]) == ("WF-9@2", ["/context/a", "/messages/-", "/messages/0/text"])
    state = run("show", "WF-9", "--json", "--store", store).data["state"]
    assert state["context"] == {"a": 2}
    assert state["messages"] == [{"role": "user", "text": "anew"}, {"role": "user"}]
    assert "with /context/a set" in run("fork", "WF-1@1", "WF-8", *edits[:2], "--store", store).out


def test_a_change_that_does_not_fit_leaves_no_fork_behind(run: Run, store: Path):
    for edit, leave in (
        ("/nowhere/x=1", Exit.NOT_FOUND),
        ("/messages/9=1", Exit.NOT_FOUND),
        ("/current_step/x=1", Exit.NOT_FOUND),
        ("context=1", Exit.USAGE),
        ("/context", Exit.USAGE),
        ("=1", Exit.USAGE),
        ("/phase={bad", Exit.USAGE),
    ):
        assert run("fork", "WF-1@1", "WF-9", "--set", edit, "--store", store).exit_code == leave
        assert run("fork", "WF-1@1", "WF-9", "--set", edit, "--dry-run", "--store", store).exit_code == leave
    assert run("list", "WF-9", "--store", store).exit_code == Exit.NOT_FOUND
