"""Carrying a run out, and recording how it ended."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import LeaseLostError
from holdfast.domain.run_events import RUN_UPDATED, open_questions
from holdfast.execution.approvals import Suspended
from holdfast.execution.asked import Asked
from holdfast.execution.claim import Claim
from holdfast.execution.declared import Service
from holdfast.execution.journal import Fact, Journal, Save
from holdfast.execution.outcome import RunResult, RunStatus, unless_lost
from holdfast.execution.request_watch import watched
from holdfast.execution.running import RUN, Runner
from holdfast.execution.signals import heeded
from holdfast.execution.stopping import Stopped

_FINAL = frozenset({RunStatus.COMPLETED, RunStatus.CANCELLED})


async def carry_out(runner: Runner, service: Service, claim: Claim) -> RunResult:
    """Walk through the plan, heed what is asked meanwhile, and record the end.

    Raises:
        CheckpointError: what ended the run, once that is recorded.
        ResultLostError: it came to its end, and that is not recorded.
    """
    began, kept = time.monotonic(), len(runner.results.by_step())
    if runner.journal.fields.get("metadata", {}).get("ends_as") == RunStatus.CANCELLED:
        # Whoever ran it died between hearing that and recording its end.
        runner.stop.set(RunStatus.CANCELLED)
    ready = asyncio.Event()
    walking = asyncio.ensure_future(_walk(runner, ready))
    claim.on_lost = walking.cancel
    asked = Asked(runner, walking.cancel)

    def on_signal() -> None:
        runner.stop.set(RunStatus.STOPPED)
        walking.cancel()

    options, workflow_id = runner.options, runner.journal.workflow_id
    looking = watched(service.requests, id(service), workflow_id, asked.carry_out, options.poll_seconds)
    with heeded(on_signal, enabled=options.handles_signals):
        try:
            async with looking as watch:
                runner.look = watch.look
                if runner.journal.is_resumed:
                    # What was asked while nobody ran it comes before anything is begun.
                    await watch.look(workflow_id)
                ready.set()
                status, fault = await _ended(runner, walking, claim)
        except asyncio.CancelledError as cancelled:
            # It came before anybody waited for the walk, or after that.
            walking.cancel()
            await asyncio.wait({walking})
            status, fault = RunStatus.STOPPED, cancelled
    seconds = time.monotonic() - began
    await _conclude(runner, status, seconds)
    if fault is not None:
        raise fault
    return _checked(_result(runner, status, kept, seconds), runner.journal)


def _checked(result: RunResult, journal: Journal) -> RunResult:
    """Answer a result, unless something of it could not even wait and no later checkpoint has it."""
    return result if journal.lost is None else unless_lost(result.with_unwritten(journal.lost))


async def _walk(runner: Runner, ready: asyncio.Event) -> None:
    await ready.wait()
    await runner.walk()


async def _ended(
    runner: Runner, walking: asyncio.Future[None], claim: Claim
) -> tuple[RunStatus, BaseException | None]:
    """Wait for the end, and tell how it came."""
    try:
        await walking
        return RunStatus.COMPLETED, None
    except Stopped as stop:
        return stop.status, None
    except Suspended:
        return runner.stop.status or RunStatus.WAITING, None
    except asyncio.CancelledError as cancelled:
        if claim.is_lost:
            raise LeaseLostError(
                "somebody else runs the workflow now, and nothing more was done here",
                place=runner.journal.workflow_id,
                hint="Wait for its outcome.",
            ) from None
        if runner.stop.status is not None:
            return runner.stop.status, None
        walking.cancel()
        # Nothing of the run may go on after its end is recorded.
        await asyncio.wait({walking})
        return RunStatus.STOPPED, cancelled
    except Exception as problem:
        if runner.journal.tells_loss(problem):
            raise
        return RunStatus.FAILED, problem


async def _conclude(runner: Runner, status: RunStatus, seconds: float) -> None:
    """Record how the run ended: with a last checkpoint, after which only an ended one cannot be resumed."""
    journal = runner.journal
    fields = journal.fields
    metadata = {**fields.get("metadata", {}), "adaptive": runner.watch.learnt()}
    update: dict[str, Any] = {"status": str(status), "resumable": status not in _FINAL}
    metrics = fields.get("metrics", {})
    elapsed = {**metrics, "elapsed_seconds": round(metrics.get("elapsed_seconds", 0.0) + seconds, 6)}
    fact = Fact(RUN_UPDATED, {"fields": {**update, "metadata": metadata, "metrics": elapsed}}, RUN)
    kind = CheckpointType.WORKFLOW_COMPLETE if status in _FINAL else CheckpointType.STAGE_START
    if status is RunStatus.FAILED:
        # The checkpoint of the error is there already, with everything that may help.
        await journal.commit_async(fact)
    else:
        made = await journal.commit_async(fact, Save(str(status), {"type": kind}))
        if made is not None and status in _FINAL:
            error = None if status is RunStatus.COMPLETED else "it was cancelled"
            await asyncio.to_thread(journal.recording.mark, made, error)
    journal.tell("run_ended", status=str(status), seconds=seconds)


def _result(runner: Runner, status: RunStatus, kept: int, seconds: float) -> RunResult:
    fields = runner.journal.fields
    return RunResult(
        runner.journal.workflow_id,
        status,
        runner.results.by_step(),
        runner.results.of_last() if status is RunStatus.COMPLETED else None,
        fields.get("outputs", []),
        fields.get("metrics", {}),
        fields.get("confidence"),
        resumed=runner.journal.is_resumed,
        kept=kept,
        ran=runner.steps.ran,
        checkpoints=runner.journal.checkpoints,
        seconds=seconds,
        waiting=tuple(f"{step}: {name}" for step, name, _ in open_questions(fields)),
        warnings=tuple(runner.journal.warnings),
    )
