"""`holdfast demo`: a team of pretend agents is killed twice, and its work is carried on each time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from shlex import quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.exits import Exit, Failure
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import looking, reading
from holdfast.cli.output import Output, counted, safe
from holdfast.cli.validate import Verdict, check_deeply, check_everything
from holdfast.domain.json_reading import read_json

if TYPE_CHECKING:
    from holdfast.domain.log_check import LogReport
    from holdfast.domain.state import WorkflowState

_WORKFLOW = "kelp"
#: Each process but the last has one thought that never ends, and is killed in the middle of it.
_ENDLESS = ("research[blades] a torn blade regrows from its base", "publish what readers will say", None)
_OPENINGS = ("", "A new process goes on:", "And a third one:")
_SILENT = Output(quiet=True)


@dataclass(slots=True)
class Told:
    """What a process told before it ended."""

    begun: list[str] = field(default_factory=list)
    #: What the agents answered, in words, by step; each result was committed by then.
    done: dict[str, str] = field(default_factory=dict)
    #: Keys of what was posted to the world outside, which is us.
    posted: list[str] = field(default_factory=list)
    #: The step whose thought does not end.
    thinking: str | None = None

    @property
    def is_stuck(self) -> bool:
        """Whether nothing is under way any more but the thought that does not end."""
        return self.thinking is not None and set(self.begun) - set(self.done) == {self.thinking}


@click.command("demo", cls=StoreCommand)
def command(call: Call) -> None:
    """Kill a team of agents twice and carry its work on.

    Pretend agents research a question and post a report, in a process of
    their own that is ended with SIGKILL. New processes go on from what the
    store kept. Uses a temporary folder, unless --store names one to keep.

    \b
    Example:
      holdfast demo --store ./kelp
    """
    with _place(call) as store:
        here = replace(call, store=store)
        workflow_id = _free_name(here)
        summary = _perform(here, workflow_id)
        if call.output.as_json:
            call.output.data({"workflow_id": workflow_id, "store": call.store, **summary})
        elif call.store:
            _tell_where(call.output, workflow_id, call.store)
    if not (summary["valid"] and summary["done"]):
        raise click.exceptions.Exit(Exit.CORRUPT)


def _tell_where(output: Output, workflow_id: str, store: str) -> None:
    """Say how to look at what is left."""
    program, place = quote(_program()), safe(quote(store))
    output.line(output.bold("\nLook around:\n"))
    output.line(f"  {'the dashboard':<18}{program} serve --store {place}")
    output.line(f"  {'a listing':<18}{program} list {workflow_id} --store {place}")


def _program() -> str:
    """Name this program as it can be called from here: in a checkout it is on nobody's path."""
    called = sys.argv[0]
    is_ours = os.path.basename(called) == "holdfast"
    return called if is_ours and shutil.which("holdfast") is None else "holdfast"


@contextmanager
def _place(call: Call) -> Iterator[str]:
    """Give the store that was named, or a folder that goes away afterwards."""
    if call.store is None:
        with TemporaryDirectory(prefix="holdfast-demo-") as folder:
            yield os.path.join(folder, "store")
    elif call.store.startswith("memory:"):
        hint = "Several processes share it: name a folder."
        raise Failure("wrong_usage", Exit.USAGE, "a store in memory dies with its process", hint=hint)
    else:
        yield call.store


def _free_name(call: Call) -> str:
    """Name a workflow that the store does not hold yet, making the store if there is none."""
    from holdfast import bootstrap

    with bootstrap.open(call.store):
        pass
    with reading(call) as kit:
        taken = set(kit.store.workflows())
    names = (f"{_WORKFLOW}-{number}" if number > 1 else _WORKFLOW for number in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)


def _perform(call: Call, workflow_id: str) -> dict[str, Any]:
    """Run the processes one after another; answer what can be counted."""
    from holdfast.cli.demo_team import QUESTION

    output, runs, lost = call.output, list[Told](), 0
    _say(output, output.bold(f'A team of agents answers: "{QUESTION}"'))
    _say(output, "Each result is committed before anybody builds on it.\n")
    for opening, endless in zip(_OPENINGS, _ENDLESS, strict=True):
        if opening:
            _say(output, output.bold(f"\n{opening}\n"))
        runs.append(_run_team(call, workflow_id, endless, {step for told in runs for step in told.begun}))
        if endless is not None:
            lost += _look(call, workflow_id, runs)
    summary = _summary(call, workflow_id, runs, lost)
    _show_summary(output, summary)
    return summary


def _run_team(call: Call, workflow_id: str, endless: str | None, begun_before: Collection[str]) -> Told:
    """Start the team, listen, and kill it once nothing is left but the thought that never ends."""
    told, killed = Told(), False
    arguments = [sys.executable, "-P", "-m", "holdfast.cli.demo_team", workflow_id]
    # Not as an argument: those of a process are for everybody to see, and a URL may hold a password.
    environment = {**os.environ, "HOLDFAST_STORE": str(call.store)}
    with subprocess.Popen(
        [*arguments, *filter(None, [endless])], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        shown: list[str] = []
        try:
            for line in process.stdout:
                _hear(told, read_json(line))
                _show_steps(call.output, told, shown, begun_before)
                if told.is_stuck and not killed:
                    process.send_signal(signal.SIGKILL)
                    killed = True
                    _show_kill(call.output, str(told.thinking))
        except BaseException:
            process.kill()
            raise
    if process.returncode != (-signal.SIGKILL if killed else 0):
        raise Failure("demo_failed", Exit.UNEXPECTED, f"the team's process ended with {process.returncode}")
    return told


def _hear(told: Told, message: dict[str, Any]) -> None:
    step = message["step"]
    if message["say"] == "begin":
        told.begun.append(step)
    elif message["say"] == "done":
        told.done[step] = message["text"]
    elif message["say"] == "posted":
        told.posted.append(step)
    else:
        told.thinking = step


def _show_steps(output: Output, told: Told, shown: list[str], begun_before: Collection[str]) -> None:
    """Show what is done, always in the same order: of agents that work at once, any may be first."""
    from holdfast.cli.demo_team import STEPS

    for step in STEPS:
        if step in told.begun and step not in told.done:
            return
        if step in told.done and step not in shown:
            shown.append(step)
            again = output.faint("  begun again") if step in begun_before else ""
            _say(output, f"  {step:<18}{told.done[step]}{again}")


def _show_kill(output: Output, step: str) -> None:
    _say(output, f"  {step:<18}is at work")
    _say(output, output.paint(f"  {'kill -9':<18}the process is gone", "bad"))


def _look(call: Call, workflow_id: str, runs: Sequence[Told]) -> int:
    """Tell what a reader finds before anybody has repaired anything; answer how many results are lost."""
    acknowledged = {step for told in runs for step in told.done}
    with looking(call, audit=False) as service:
        last = service.events(workflow_id)[-1].seq
        state = service.restore_checkpoint(f"{workflow_id}@event:{last}")
    kept = {task["id"] for task in state.tasks}
    output, decision = call.output, state.decisions[-1]
    _say(output, output.bold("\nWhat the store holds now, read back and verified:\n"))
    _say_labelled(output, "last decision", f"{decision['agent']}: {decision['description']}")
    _say_labelled(output, "results", f"{len(kept & acknowledged)} of the {len(acknowledged)} acknowledged")
    _say_labelled(output, "under way", _under_way(state, runs[-1].thinking))
    return len(acknowledged - kept)


def _under_way(state: WorkflowState, step: str | None) -> str:
    """Tell what is known of an agent that was cut short."""
    known = state.agent_states.get(str(step), {})
    if "milestone" in known:
        return f"{step}, up to its milestone: {known['milestone']['name']}"
    effects = [
        f"its effect {name!r} is {effect['status']}" for name, effect in known.get("effects", {}).items()
    ]
    return ", ".join([str(step), *effects])


def _summary(call: Call, workflow_id: str, runs: Sequence[Told], lost: int) -> dict[str, Any]:
    """Count what happened, from what the processes told and what the store holds."""
    from holdfast.cli.demo_team import STEPS

    verdict = Verdict()
    with reading(call) as kit:
        check_everything(_SILENT, kit, verdict)
        check_deeply(_SILENT, kit, verdict)
    with looking(call, audit=False) as service:
        completed = Counter(event.step_id for event in service.events(workflow_id, type="AGENT_COMPLETED"))
    trail = _trail(call)
    begun = Counter(step for told in runs for step in told.begun)
    return {
        "steps": len(STEPS),
        "kills": len(runs) - 1,
        "lost": lost,
        "completed": len(completed),
        "completed_twice": sum(count > 1 for count in completed.values()),
        "begun_again": [step for step in STEPS if begun[step] > 1],
        "posted": sum(len(told.posted) for told in runs),
        "checkpoints": verdict.checkpoints,
        "events": verdict.events,
        "problems": len(verdict.problems),
        "trail_entries": trail.entries,
        "trail_faults": trail.fault_count,
        "valid": verdict.valid and not trail.fault_count,
        "done": set(completed) == set(STEPS),
    }


def _trail(call: Call) -> LogReport:
    from holdfast.cli.audit_opening import looking as looking_at_trail

    with looking_at_trail(call) as (_, log):
        return log.verify()


def _show_summary(output: Output, summary: dict[str, Any]) -> None:
    results = (
        f"{summary['completed']} of {summary['steps']}, {summary['completed_twice']} of them computed twice"
    )
    records = f"{counted(summary['checkpoints'], 'checkpoint')} and {counted(summary['events'], 'event')}"
    trail = (
        f"{counted(summary['trail_entries'], 'entry')} in unbroken chains, {summary['trail_faults']} wrong"
    )
    posted = "once" if summary["posted"] == 1 else counted(summary["posted"], "time")
    _say(output, output.bold("\nThe report is done:\n" if summary["done"] else "\nThe report is not done:\n"))
    _say_labelled(output, "results", results)
    _say_labelled(output, "begun again", f"{', '.join(summary['begun_again'])}: at work at a kill")
    _say_labelled(output, "posted", f"{posted}, though its agent began twice")
    _say_labelled(output, "verified", f"{records}, {summary['problems']} damaged")
    _say_labelled(output, "audit trail", trail)


def _say_labelled(output: Output, label: str, text: str) -> None:
    _say(output, f"  {label:<18}{text}")


def _say(output: Output, text: str) -> None:
    if not output.as_json:
        output.line(text)
