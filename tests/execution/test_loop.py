from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import CheckpointService, WorkflowState
from holdfast.domain.errors import (
    AgentFailedError,
    CheckpointConflictError,
    GraphChangedError,
    InvalidIdError,
    InvalidStateError,
    LeaseHeldError,
    LeaseLostError,
    NoValidCheckpointError,
    UnsupportedTypeError,
)
from holdfast.execution.loop import LoopRun
from tests.execution.runs import chain, damage, kinds, latest, opened, types


def count_to(service: CheckpointService, last: int, fails_at: int | None = None) -> Any:
    with holdfast.loop(service, "WF-1", {"i": 0}) as run:
        while run.state["i"] < last:
            run.state["i"] += 1
            if run.state["i"] == fails_at:
                raise ValueError("no more")
            run.save()
    return run


def recovered(service: CheckpointService) -> WorkflowState:
    state = service.recover_workflow("WF-1").state
    assert state is not None
    return state


def test_a_loop_begins_with_what_it_is_given_and_ends_completed() -> None:
    with opened() as service:
        run = count_to(service, 3)
        assert run.state == {"i": 3} and not run.is_resumed and not run.is_over
        state = latest(service, "WF-1")
        assert state.context == {"i": 3} and state.status == "completed" and not state.resumable
        assert kinds(service) == ["workflow_start", *["stage_complete"] * 3, "workflow_complete"]
        assert str(service.list_checkpoints("WF-1")[0].status) == "completed"


def test_a_child_that_is_forked_inside_and_exits_leaves_the_loop_to_its_parent(tmp_path: Path) -> None:
    parent = os.getpid()
    try:
        with holdfast.loop(str(tmp_path / "store"), "WF-1", {"i": 0}) as run:
            child = os.fork()
            if child == 0:
                sys.exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            run.state["i"] += 1
            run.save()
    except SystemExit as end:
        if os.getpid() != parent:
            os._exit(int(str(end.code)))
        raise
    finally:
        if os.getpid() != parent:
            os._exit(1)
    with holdfast.open(str(tmp_path / "store")) as service:
        assert latest(service).context == {"i": 1} and latest(service).status == "completed"


def test_an_exception_leaves_the_loop_failed_at_the_state_last_saved() -> None:
    with opened() as service:
        with pytest.raises(ValueError, match="no more"):
            count_to(service, 5, fails_at=3)
        assert latest(service, "WF-1").context == {"i": 2}
        assert recovered(service).status == "failed"
        assert str(service.list_checkpoints("WF-1")[0].status) == "failed"
        assert service.lease_of("WF-1") is None
        run = count_to(service, 5)
        assert run.is_resumed and run.state == {"i": 5}


def test_an_interrupt_is_no_failure() -> None:
    with opened() as service:
        with pytest.raises(KeyboardInterrupt), holdfast.loop(service, "WF-1", {"i": 0}):
            raise KeyboardInterrupt
        assert recovered(service).status == "stopped"


def test_a_loop_that_is_over_tells_its_last_state_and_takes_nothing_more() -> None:
    with opened() as service:
        count_to(service, 3)
        with holdfast.loop(service, "WF-1", {"i": 0}) as run:
            assert run.is_over and run.state == {"i": 3}
            with pytest.raises(InvalidStateError, match="ended before"):
                run.save()
        assert len(kinds(service)) == 5


def test_a_loop_can_be_left_and_gone_on_with() -> None:
    with opened() as service:
        with holdfast.loop(service, "WF-1", {"i": 0}) as run:
            run.state["i"] = 1
            run.pause()
        assert latest(service, "WF-1").status == "paused"
        with holdfast.loop(service, "WF-1") as run:
            assert run.is_resumed and run.state == {"i": 1}


def test_a_whole_state_is_kept_as_one() -> None:
    start = WorkflowState(messages=[{"role": "user", "content": "why?"}], total_steps=3)
    with opened() as service:
        with holdfast.loop(service, "WF-1", start) as run:
            run.state.messages.append({"role": "agent", "content": "because"})
            run.save()
            run.pause()
        with holdfast.loop(service, "WF-1", WorkflowState()) as run:
            assert len(run.state.messages) == 2 and run.state.total_steps == 3
        assert latest(service, "WF-1").status == "completed"


def test_what_else_is_in_a_state_stays_beside_a_plain_one() -> None:
    with opened() as service:
        service.create_checkpoint("WF-1", WorkflowState(context={"i": 1}, decisions=[{"description": "go"}]))
        with holdfast.loop(service, "WF-1") as run:
            run.state["i"] += 1
            run.service.record_decision("WF-1", "stop")
            run.save()
        state = latest(service, "WF-1")
        assert state.context == {"i": 2} and [one["description"] for one in state.decisions] == ["go"]


def test_a_state_can_be_replaced_and_changed_after_it_was_saved() -> None:
    with opened() as service, holdfast.loop(service, "WF-1", {"i": [0]}) as run:
        run.state = {"i": [1]}
        first = run.save()
        run.state["i"].append(2)
        assert service.restore_checkpoint(first).context == {"i": [1]}


def test_the_start_that_is_given_is_not_changed() -> None:
    start = {"i": 0}
    with opened() as service, holdfast.loop(service, "WF-1", start) as run:
        run.state["i"] = 7
    assert start == {"i": 0}


def test_a_coroutine_saves_without_holding_up_the_event_loop(tmp_path: Path) -> None:
    async def main() -> None:
        async with holdfast.loop(f"sqlite:{tmp_path}/store.db", "WF-1", {"i": 0}) as run:
            while run.state["i"] < 3:
                run.state["i"] += 1
                made = await run.save()
                assert made.sequence == run.state["i"] + 1

    asyncio.run(main())
    with holdfast.open(f"sqlite:{tmp_path}/store.db") as service:
        assert latest(service, "WF-1").status == "completed"


def test_a_coroutine_that_fails_goes_on_where_it_was(tmp_path: Path) -> None:
    async def main(*, fails: bool) -> Any:
        async with holdfast.loop(str(tmp_path / "store"), "WF-1", {"i": 0}) as run:
            while run.state["i"] < 3:
                run.state["i"] += 1
                if fails and run.state["i"] == 2:
                    raise ValueError("no more")
                await run.save()
        return run

    with pytest.raises(ValueError, match="no more"):
        asyncio.run(main(fails=True))
    run = asyncio.run(main(fails=False))
    assert run.is_resumed and run.state == {"i": 3}


def test_many_loops_in_one_store_do_not_meet() -> None:
    async def one(service: CheckpointService, number: int) -> None:
        async with holdfast.loop(service, f"WF-{number}", {"i": 0}) as run:
            while run.state["i"] < 5:
                run.state["i"] += 1
                await run.save()

    async def main(service: CheckpointService) -> None:
        await asyncio.gather(*(one(service, number) for number in range(8)))

    with opened() as service:
        asyncio.run(main(service))
        assert all(latest(service, f"WF-{number}").context == {"i": 5} for number in range(8))


@pytest.mark.parametrize("url", ["file:{}", "sqlite:{}.db"])
def test_two_of_one_id_keep_each_other_out(tmp_path: Path, url: str) -> None:
    store = url.format(tmp_path / "store")
    with holdfast.loop(store, "WF-1", {"i": 0}):
        with pytest.raises(LeaseHeldError), holdfast.loop(store, "WF-1"):
            pass
        with holdfast.loop(store, "WF-2"):
            pass


def test_one_who_lost_the_loop_writes_nothing_more(tmp_path: Path) -> None:
    with (
        holdfast.open(str(tmp_path / "store")) as mine,
        holdfast.open(str(tmp_path / "store")) as other,
        pytest.raises(LeaseLostError),
        holdfast.loop(mine, "WF-1", {"i": 0}) as run,
    ):
        lease = mine.lease_of("WF-1")
        assert lease is not None
        mine.renew_lease(lease, ttl_seconds=0)
        other.acquire_lease("WF-1", "somebody")
        other.create_checkpoint("WF-1", {"i": 99})
        run.state["i"] = 1
        run.save()
    with holdfast.open(str(tmp_path / "store")) as service:
        assert latest(service, "WF-1").context == {"i": 99}


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("kind", ["workflow", "function"])
def test_an_id_of_a_workflow_or_a_function_is_refused_and_stays_as_it_is(kind: str, fails: bool) -> None:
    failing = [fails]

    def work(*ctx: Any) -> str:
        if failing[0]:
            raise ValueError("not yet")
        return "done"

    with opened() as service:
        workflow = chain(work)
        function = holdfast.durable(service, id="WF-1", name="work")(lambda: work())
        again = function if kind == "function" else (lambda: workflow.run_sync(service, "WF-1").value)
        if fails:
            with pytest.raises((ValueError, AgentFailedError)):
                again()
        else:
            again()
        before = latest(service)
        with pytest.raises(GraphChangedError, match="belongs to"), holdfast.loop(service, "WF-1", {"i": 0}):
            pass
        assert latest(service) == before and service.lease_of("WF-1") is None
        failing[0] = False
        assert again() == "done"


def test_a_loop_over_the_state_of_a_run_of_its_own_goes_on() -> None:
    start = WorkflowState("WF-1", metadata={"function": "mine"})
    with opened() as service:
        for _ in range(2):
            with holdfast.loop(service, "WF-1", start) as run:
                run.pause()
        assert run.is_resumed


def test_a_loop_that_is_kept_from_another_one_has_failed_as_by_any_error() -> None:
    with opened() as service:
        service.acquire_lease("WF-2", "somebody")
        with pytest.raises(LeaseHeldError), holdfast.loop(service, "WF-1") as run:
            run.save()
            with holdfast.loop(service, "WF-2"):
                pass
        assert recovered(service).status == "failed"


def test_a_loss_that_was_noticed_is_told_at_the_next_save() -> None:
    with (
        opened() as service,
        pytest.raises(LeaseLostError, match="carries the loop on"),
        holdfast.loop(service, "WF-1") as run,
    ):
        run._claim.lose()
        run.save()


def test_what_cannot_be_stored_is_told_where_it_is() -> None:
    with (
        opened() as service,
        pytest.raises(UnsupportedTypeError, match=r"context\.strange"),
        holdfast.loop(service, "WF-1", {"i": 0}) as run,
    ):
        run.state["strange"] = object()
        run.save()


def test_the_error_of_the_loop_is_what_its_caller_hears_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: Any) -> Any:
        raise CheckpointConflictError("the disk is gone")

    with (
        opened() as service,
        pytest.raises(ValueError, match="mine"),
        holdfast.loop(service, "WF-1") as run,
    ):
        monkeypatch.setattr(run._recording, "wait", refuse)
        raise ValueError("mine")
    assert "that WF-1 failed is not recorded: the disk is gone" in caplog.text
    assert caplog.records[0].levelno == logging.WARNING


def test_a_loop_of_which_nothing_verifies_is_refused_or_begun_anew_as_configured(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with holdfast.loop(str(store), "WF-1", {"i": 0}) as run:
        run.state["i"] = 1
        run.pause()
    damage(store)
    with pytest.raises(NoValidCheckpointError), holdfast.loop(str(store), "WF-1", {"i": 0}):
        pass
    with (
        holdfast.open(str(store), on_no_valid="fresh") as service,
        holdfast.loop(service, "WF-1", {"i": 0}) as run,
    ):
        assert run.state == {"i": 0}


def test_a_history_that_grows_costs_what_was_added(tmp_path: Path) -> None:
    turns, text = 300, "the stalk bends with a wave and swings back. " * 45
    with (
        holdfast.open(str(tmp_path / "store"), warn_bytes=10**9) as service,
        holdfast.loop(service, "WF-1", {"turns": []}) as run,
    ):
        while len(run.state["turns"]) < turns:
            run.state["turns"].append(f"{len(run.state['turns'])} {text}")
            run.save()
    stored = sum(path.stat().st_size for path in (tmp_path / "store").rglob("*") if path.is_file())
    assert stored <= 3 * turns * len(text) + 2_000 * (turns + 2)


@pytest.mark.parametrize("workflow_id", ["", "a\x00b", "x" * 256])
def test_a_name_that_is_none_is_refused_at_once(workflow_id: str) -> None:
    with pytest.raises(InvalidIdError):
        holdfast.loop("memory:", workflow_id)


@pytest.mark.parametrize("fault", [None, ValueError("no more"), KeyboardInterrupt()])
def test_a_block_that_was_left_records_nothing_more(fault: BaseException | None) -> None:
    with opened() as service:
        with (
            contextlib.suppress(ValueError, KeyboardInterrupt),
            holdfast.loop(service, "WF-1", {"i": 1}) as run,
        ):
            run.save()
            if fault is not None:
                raise fault
        before = latest(service), types(service)
        run.state["i"] = 99
        with pytest.raises(InvalidStateError, match="the block of the loop has ended") as refusal:
            run.save()
        assert refusal.value.place == "WF-1" and "pause" in (refusal.value.hint or "")
        with pytest.raises(InvalidStateError, match="the block of the loop has ended"):
            run.pause()
        assert (latest(service), types(service)) == before


def test_a_loop_that_is_carried_on_by_another_block_is_left_alone_by_the_one_before() -> None:
    with opened() as service:
        with holdfast.loop(service, "WF-1", {"i": 0}) as stale:
            stale.pause()
        with holdfast.loop(service, "WF-1") as run:
            run.state["i"] = 10
            first = run.save()
            stale.state["i"] = -1
            with pytest.raises(InvalidStateError):
                stale.save()
            assert run.save().sequence == first.sequence + 1
        assert latest(service).context == {"i": 10}


def test_a_task_that_goes_on_after_its_block_records_nothing() -> None:
    async def main(service: CheckpointService) -> None:
        is_over = asyncio.Event()

        async def save_late(run: Any) -> None:
            await is_over.wait()
            run.state["i"] = 99
            await run.save()

        async with holdfast.loop(service, "WF-1", {"i": 1}) as run:
            late = asyncio.ensure_future(save_late(run))
        is_over.set()
        with pytest.raises(InvalidStateError, match="the block of the loop has ended"):
            await late

    with opened() as service:
        asyncio.run(main(service))
        assert latest(service).context == {"i": 1} and latest(service).status == "completed"


def test_nothing_is_saved_between_the_end_of_a_block_and_what_is_recorded_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    end = LoopRun._end

    def end_late(run: Any) -> None:
        with pytest.raises(InvalidStateError) as refusal:
            run.save()
        told.append(refusal.value.message)
        end(run)

    monkeypatch.setattr(LoopRun, "_end", end_late)
    with opened() as service:
        count_to(service, 1)
        assert latest(service).status == "completed" and len(told) == 1
