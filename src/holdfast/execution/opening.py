"""From a declared workflow to a run: the store, the lease, the state it goes on from, and its end."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

from holdfast.application.app import App
from holdfast.application.recording import Recording
from holdfast.config import Config
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import CheckpointRecoveryError, InvalidStateError
from holdfast.domain.ids import check_workflow_id
from holdfast.domain.record import Lease
from holdfast.domain.run_events import RUN_UPDATED
from holdfast.domain.state import WorkflowState
from holdfast.execution import tenure
from holdfast.execution.adaptive import AdaptiveInterval
from holdfast.execution.claim import Claim
from holdfast.execution.concluding import carry_out
from holdfast.execution.declared import Declared, Service, StoreLike
from holdfast.execution.drift import check_drift, check_owner, drift, news, renames
from holdfast.execution.engines.local import LocalEngine
from holdfast.execution.engines.port import Engine
from holdfast.execution.finishing import begun, finished, settled
from holdfast.execution.floor import floor
from holdfast.execution.journal import Fact, Journal, Save
from holdfast.execution.leases import KEEPER
from holdfast.execution.memory_pressure import MemoryGauge
from holdfast.execution.options import RunOptions
from holdfast.execution.outcome import RunResult, RunStatus, unless_lost
from holdfast.execution.plan import Plan
from holdfast.execution.results import Results, parted, subject_of
from holdfast.execution.run_spans import RunSpan, run_span
from holdfast.execution.running import RUN, Runner
from holdfast.execution.scribe import Scribe
from holdfast.execution.signals import handed_on
from holdfast.execution.tenure import aside
from holdfast.execution.triggers import TriggerWatch

_MEMORY = MemoryGauge()


async def run_workflow(
    workflow: Declared,
    store: StoreLike,
    workflow_id: str,
    inputs: Mapping[str, Any] | None,
    options: RunOptions | None,
) -> RunResult:
    """Run a workflow under an id, or go on with it; see `Workflow.run`."""
    check_workflow_id(workflow_id)
    if inputs is not None and not isinstance(inputs, Mapping):
        raise InvalidStateError(
            f"the inputs are a {type(inputs).__name__}", place=workflow_id, hint="Give a mapping of names."
        )
    chosen = options or RunOptions()
    async with handed_on(enabled=chosen.handles_signals):
        work = partial(_run_taken, workflow, workflow_id=workflow_id, inputs=inputs, chosen=chosen)
        return await run_on(store, workflow.app, work)


async def run_on(
    store: StoreLike, app: App | None, work: Callable[[Service], Awaitable[RunResult]]
) -> RunResult:
    """Have the store meanwhile, and tell what it does not have of the run at its end.

    Raises:
        ResultLostError: of something of it, nobody has it.
    """
    async with opened(store, app) as service:
        result = await work(service)
    # A store that was opened here is closed by now: what waited was tried once more, and kept elsewhere.
    return unless_lost(result.with_unwritten(service.recording.unwritten(result.workflow_id)))


async def _run_taken(
    workflow: Declared,
    service: Service,
    workflow_id: str,
    inputs: Mapping[str, Any] | None,
    chosen: RunOptions,
) -> RunResult:
    """Have the lease meanwhile."""
    plan = workflow.plan
    async with _taken(service, workflow_id, chosen) as (claim, ended):
        if ended is not None:
            return _told(service, plan, ended, inputs, chosen)
        with run_span(service.recording.tracing, workflow.name, workflow_id) as span:
            begin = partial(_journal, workflow, service, workflow_id, inputs, chosen, span)
            journal = await _begun(begin)
            result = await _carried_out(workflow, service, journal, chosen, claim)
            span.ended(result.status)
            return result


async def _begun(begin: Callable[[], Journal]) -> Journal:
    """Begin the journal in a thread; whoever is cancelled meanwhile has the lease until that has ended."""
    beginning = begun(begin)
    cancelled = await settled(beginning)
    if cancelled is None:
        return beginning.result()
    if beginning.exception() is None:
        stopped = Fact(RUN_UPDATED, {"fields": {"status": str(RunStatus.STOPPED)}}, RUN)
        await settled(begun(beginning.result().commit, stopped))
    raise cancelled


async def _carried_out(
    workflow: Declared, service: Service, journal: Journal, options: RunOptions, claim: Claim
) -> RunResult:
    """Walk through the plan, and let the progress report follow."""
    scribe = Scribe(service.recording, floor().scribes)
    journal.publish = scribe.put
    try:
        with _engines(workflow) as engines:
            watch = _watch(workflow, journal)
            runner = Runner(workflow.plan, journal, options, watch, engines, workflow.confidence_factor)
            return await carry_out(runner, service, claim)
    finally:
        await scribe.finish()


@asynccontextmanager
async def opened(store: StoreLike, app: App | None = None) -> AsyncIterator[Service]:
    """Answer an open service; one that was opened here is closed here."""
    if not isinstance(store, str | os.PathLike):
        yield store
        return
    async with aside(tenure.opened(store, app, configured=Config.for_runs)) as service:
        yield service


def _take(
    recording: Recording, workflow_id: str, ttl_seconds: float
) -> tuple[Lease | None, WorkflowState | None]:
    """Take a workflow unless it has ended; answer the lease, and the state that it ended with."""
    ended = recording.ended(workflow_id)
    if ended is not None:
        return None, ended
    lease = recording.take(workflow_id, "run", ttl_seconds)
    try:
        # Whoever had it before may have brought it to its end meanwhile.
        return lease, recording.ended(workflow_id)
    except BaseException:
        recording.give_up(lease)
        raise


async def _leased(
    service: Service, workflow_id: str, options: RunOptions
) -> tuple[Lease | None, WorkflowState | None]:
    """Take the lease; whoever is cancelled meanwhile leaves none behind."""
    recording = service.recording
    taking = begun(_take, recording, workflow_id, options.lease_seconds)
    cancelled = await settled(taking)
    if cancelled is None:
        return taking.result()
    lease = None if taking.exception() is not None else taking.result()[0]
    if lease is not None:
        await settled(begun(recording.give_up, lease))
    raise cancelled


@asynccontextmanager
async def _taken(
    service: Service, workflow_id: str, options: RunOptions
) -> AsyncIterator[tuple[Claim, WorkflowState | None]]:
    """Have the workflow for this run meanwhile, unless it has ended: then answer how."""
    recording, loop, claim = service.recording, asyncio.get_running_loop(), Claim()
    lease, ended = await _leased(service, workflow_id, options)
    if lease is None:
        yield claim, ended
        return
    KEEPER.keep(recording, lease, options.lease_seconds, lambda: loop.call_soon_threadsafe(claim.lose))
    try:
        yield claim, ended
    finally:
        KEEPER.drop(recording, lease)
        if not claim.is_lost:
            await finished(begun(recording.give_up, lease))


def _journal(
    workflow: Declared,
    service: Service,
    workflow_id: str,
    inputs: Mapping[str, Any] | None,
    options: RunOptions,
    span: RunSpan,
) -> Journal:
    """Begin the journal of a run, or go on with that of one that exists."""
    recording = service.recording
    if recording.exists(workflow_id):
        return _resumed(workflow, service, workflow_id, inputs, options, span)
    state = WorkflowState(
        workflow_id=workflow_id,
        session_id=options.session_id or "",
        status="in_progress",
        started_at=recording.now(),
        total_steps=len(workflow.plan.agents),
        phase=0,
        dag_structure=workflow.plan.structure(),
        execution_config=_config(workflow, options),
        # As a resumed run has them, whatever the caller does with those that were given.
        context=recording.as_stored({"inputs": dict(inputs or {})}),
        metadata=span.remembered({}),
    )
    journal = Journal(recording, workflow_id, state.to_fields(), options.subscribers, options.session_id)
    journal.begin(Save("started", {"type": CheckpointType.WORKFLOW_START}))
    journal.tell("run_started", workflow=workflow.name, resumed=False)
    return journal


def _resumed(
    workflow: Declared,
    service: Service,
    workflow_id: str,
    inputs: Mapping[str, Any] | None,
    options: RunOptions,
    span: RunSpan,
) -> Journal:
    """Bring a run back, and say what is different from the program that began it."""
    recovered = service.recording.recover(workflow_id)
    if not recovered.success or recovered.state is None:
        raise CheckpointRecoveryError(
            "; ".join(recovered.validation_errors) or "it cannot be brought back", place=workflow_id
        )
    check_owner(recovered.state, workflow.name)
    fields = recovered.state.to_fields()
    journal = Journal(service.recording, workflow_id, fields, options.subscribers, options.session_id)
    journal.is_resumed = True
    # A run that paused, waited or failed has said so; one that still runs has died.
    journal.has_crashed = recovered.state.status == "in_progress"
    for text in recovered.warnings:
        journal.warn(text)
    structure = workflow.plan.structure()
    said = news(fields, options.renamed, workflow.plan.agents)
    renamed = renames(fields, said, workflow.plan.agents)
    changes = drift(fields.get("dag_structure", {}), structure, _done(fields, renamed), said)
    check_drift(changes, workflow_id, strict=options.strict)
    for text in changes:
        journal.warn(text)
    for text in _other_inputs(fields, inputs):
        journal.warn(text)
    metadata = span.remembered(fields.get("metadata", {}))
    if renamed:
        # Whoever goes on after this one finds the results as well.
        metadata["renamed"] = renamed
    now = {"dag_structure": structure, "total_steps": len(workflow.plan.agents), "metadata": metadata}
    # To record a large graph takes longer than all else that is done here, and most are what they were.
    changed = {name: value for name, value in now.items() if value != fields.get(name, {})}
    update = {"status": "in_progress", **changed}
    journal.note(Fact(RUN_UPDATED, {"fields": update, "changes": list(changes)}, RUN))
    journal.tell("run_started", workflow=workflow.name, resumed=True, changes=list(changes))
    return journal


def _done(fields: Mapping[str, Any], renamed: Mapping[str, str]) -> frozenset[str]:
    """Name the agents that have results, as they are called now."""
    steps = [str(task.get("id")) for task in fields.get("tasks", ()) if isinstance(task, Mapping)]
    ended = [parted(step_id)[0] for step_id in steps if ">" not in step_id]
    return frozenset(renamed.get(name, name) for name in ended)


def _config(workflow: Declared, options: RunOptions) -> dict[str, Any]:
    return {
        "triggers": workflow.triggers.as_plain(),
        "concurrency": workflow.concurrency,
        "confidence_factor": workflow.confidence_factor,
        "config": dict(options.config),
    }


def _watch(workflow: Declared, journal: Journal) -> TriggerWatch:
    learnt = journal.fields.get("metadata", {}).get("adaptive")
    adaptive = AdaptiveInterval.from_plain(learnt) if learnt else None
    confidence = journal.fields.get("confidence")
    told = confidence.items() if isinstance(confidence, Mapping) else ()
    known = {subject_of(step_id): value for step_id, value in told}
    watch = TriggerWatch(workflow.triggers, time.monotonic, _MEMORY, adaptive, known)
    if journal.has_crashed:
        watch.failed()
        # At once: a run that dies again before its first checkpoint has learnt from this all the same.
        metadata = {**journal.fields.get("metadata", {}), "adaptive": watch.learnt()}
        journal.note(Fact(RUN_UPDATED, {"fields": {"metadata": metadata}}, RUN))
    return watch


@contextmanager
def _engines(workflow: Declared) -> Iterator[Callable[[str | None], Engine]]:
    """Answer engines by name; the one of this process belongs to the run, the others to whoever made them."""
    local = LocalEngine()
    try:
        yield lambda name: local if name is None else workflow.engines[name]
    finally:
        local.close()


def _other_inputs(fields: Mapping[str, Any], inputs: Mapping[str, Any] | None) -> tuple[str, ...]:
    if not inputs or dict(inputs) == fields.get("context", {}).get("inputs"):
        return ()
    return ("other inputs were given than the run began with: those stay",)


def _told(
    service: Service,
    plan: Plan,
    state: WorkflowState,
    inputs: Mapping[str, Any] | None,
    options: RunOptions,
) -> RunResult:
    """Tell of a run that ended before."""
    check_owner(state, plan.name)
    # The store has its end: what was refused of an earlier run here is no part of this one.
    service.recording.forget_refused(state.workflow_id)
    fields = state.to_fields()
    said = news(fields, options.renamed, plan.agents)
    changes = drift(state.dag_structure, plan.structure(), _done(fields, renames(fields, said)), said)
    check_drift(changes, state.workflow_id, strict=options.strict)
    journal = Journal(service.recording, state.workflow_id, fields)
    results = Results(journal, plan, state.metadata.get("renamed"))
    status = RunStatus(state.status)
    return RunResult(
        state.workflow_id,
        status,
        results.by_step(),
        results.of_last() if status is RunStatus.COMPLETED else None,
        state.outputs,
        state.metrics,
        state.confidence,
        resumed=True,
        kept=len(state.tasks),
        warnings=_other_inputs(fields, inputs),
    )
