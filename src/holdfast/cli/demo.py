"""`holdfast demo`: a team of pretend agents is killed half-way, and its work is carried on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.exits import Exit, Failure
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import find, reading
from holdfast.cli.output import Output, counted, safe, size_text, table_lines
from holdfast.cli.show import state_of
from holdfast.cli.validate import Verdict, check_deeply, check_everything

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.domain.record import Entry

_WORKFLOW = "kelp"
#: The process is killed while it works on this step.
_KILL_AT_STEP = 8
_ROWS_SHOWN = 3
_COLUMNS = ("CHECKPOINT", "TYPE", "STAGE", "AGENT", "STATE")
_SILENT = Output(quiet=True)


@dataclass(slots=True)
class Told:
    """What a process told before it ended."""

    begun: list[int] = field(default_factory=list)
    #: Checkpoints by step, each acknowledged as durable.
    kept: dict[int, str] = field(default_factory=dict)


@click.command("demo", cls=StoreCommand)
def command(call: Call) -> None:
    """Kill a team of agents half-way and carry its work on.

    Five pretend agents write a report in a process of their own, which is
    ended with SIGKILL. A second process goes on from what the store kept.
    Uses a temporary folder, unless --store names one to keep.

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
            call.output.line(f"\nLook around:  holdfast list {workflow_id} --store {safe(call.store)}")
    if not (summary["valid"] and summary["done"]):
        raise click.exceptions.Exit(Exit.CORRUPT)


@contextmanager
def _place(call: Call) -> Iterator[str]:
    """Give the store that was named, or a folder that goes away afterwards."""
    if call.store is None:
        with TemporaryDirectory(prefix="holdfast-demo-") as folder:
            yield os.path.join(folder, "store")
    elif call.store.startswith("memory:"):
        hint = "Two processes share it: name a folder."
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
    """Run both processes; answer what can be counted."""
    from holdfast.cli.demo_team import QUESTION

    output = call.output
    _say(output, output.bold(f'Five agents write a report: "{QUESTION}"'))
    _say(output, "Each step is committed when it is done.\n")
    first = _run_team(call, workflow_id, kill_at=_KILL_AT_STEP)
    with reading(call) as kit:
        before = _kept(kit, workflow_id)
        _show_kept(output, kit, workflow_id, first, before)
    _say(output, output.bold(f"\nA new process goes on from {workflow_id}@{len(before)}:\n"))
    second = _run_team(call, workflow_id, begun_before=set(first.begun))
    verdict = Verdict()
    with reading(call) as kit:
        check_everything(_SILENT, kit, verdict)
        check_deeply(_SILENT, kit, verdict)
        after = _kept(kit, workflow_id)
    summary = _summary(first, second, before, after, verdict)
    _show_summary(output, summary)
    return summary


def _run_team(
    call: Call, workflow_id: str, *, kill_at: int | None = None, begun_before: Collection[int] = ()
) -> Told:
    """Start the team, listen, and kill it once it has begun a step."""
    told, killed = Told(), False
    arguments = [sys.executable, "-P", "-m", "holdfast.cli.demo_team", workflow_id]
    # Not as an argument: those of a process are for everybody to see, and a URL may hold a password.
    environment = {**os.environ, "HOLDFAST_STORE": str(call.store)}
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                _hear(call.output, told, json.loads(line), begun_before)
                if not killed and told.begun[-1] == kill_at:
                    process.send_signal(signal.SIGKILL)
                    killed = True
                    _show_kill(call.output, kill_at)
        except BaseException:
            process.kill()
            raise
    if process.returncode != (-signal.SIGKILL if killed else 0):
        raise Failure("demo_failed", Exit.UNEXPECTED, f"the team's process ended with {process.returncode}")
    return told


def _hear(output: Output, told: Told, message: dict[str, Any], begun_before: Collection[int]) -> None:
    from holdfast.cli.demo_team import PLAN

    number = message["step"]
    if message["say"] == "begin":
        told.begun.append(number)
        return
    told.kept[number] = message["checkpoint"]
    step = PLAN[number - 1]
    again = output.faint("  begun again") if number in begun_before else ""
    _say(output, f"  {message['checkpoint']:<9}{step.agent:<14}{step.result}{again}")


def _show_kill(output: Output, number: int) -> None:
    from holdfast.cli.demo_team import PLAN

    _say(output, f"  {'...':<9}{PLAN[number - 1].agent:<14}at work on step {number} of {len(PLAN)}")
    _say(output, output.paint(f"  {'kill -9':<9}the process is gone", "bad"))


def _kept(kit: Kit, workflow_id: str) -> list[Entry]:
    """Answer the checkpoints that the store holds, newest first."""
    from holdfast.application.resolve import living

    return list(living(kit.store, workflow_id))


def _show_kept(output: Output, kit: Kit, workflow_id: str, first: Told, kept: list[Entry]) -> None:
    """Tell what a reader finds before anybody has repaired anything."""
    state, _ = state_of(kit, find(kit, f"{workflow_id}@latest"))
    _say(output, output.bold("\nWhat the store holds now, read back and verified:\n"))
    for line in table_lines(
        _COLUMNS, (_row(workflow_id, entry) for entry in kept[:_ROWS_SHOWN]), right="    r"
    ):
        _say(output, f"  {line}")
    _say(output, f"  and {max(len(kept) - _ROWS_SHOWN, 0)} before them\n")
    decision = state["decisions"][-1]
    lost = set(first.kept) - {entry.sequence for entry in kept}
    step = f"step {state['current_step']} of {state['total_steps']}"
    _say_labelled(output, "last decision", f"{decision['agent']}: {decision['description']}")
    _say_labelled(output, "state", f"{step}, {counted(len(state['messages']), 'note')} taken")
    _say_labelled(output, "lost", f"{len(lost)} of the {len(first.kept)} steps that were acknowledged")


def _row(workflow_id: str, entry: Entry) -> tuple[str, ...]:
    name = f"{workflow_id}@{entry.sequence}"
    return (name, entry.type, entry.stage or "-", entry.agent or "-", size_text(entry.state_bytes))


def _summary(
    first: Told, second: Told, before: list[Entry], after: list[Entry], verdict: Verdict
) -> dict[str, Any]:
    """Count what happened, from what the processes told and what the store holds."""
    from holdfast.cli.demo_team import PLAN

    held = {entry.sequence for entry in before}
    return {
        "steps": len(PLAN),
        "acknowledged_before_kill": len(first.kept),
        "kept_after_kill": len(before),
        "lost": len(set(first.kept) - held),
        "committed_by_second_process": len(second.kept),
        "committed_twice": len(held & set(second.kept)),
        "begun_twice": len(set(first.begun) & set(second.begun)),
        "checkpoints": len(after),
        "events": verdict.events,
        "problems": len(verdict.problems),
        "valid": verdict.valid,
        "done": len(after) == len(PLAN),
    }


def _show_summary(output: Output, summary: dict[str, Any]) -> None:
    again = counted(summary["begun_twice"], "step")
    records = f"{counted(summary['checkpoints'], 'checkpoint')} and {counted(summary['events'], 'event')}"
    done = f"{summary['checkpoints']} of {summary['steps']} steps"
    _say(output, output.bold("\nThe report is done:\n" if summary["done"] else "\nThe report is not done:\n"))
    _say_labelled(output, "committed", f"{done}, {summary['committed_twice']} of them twice")
    _say_labelled(output, "begun twice", f"{again}, under way when the process died")
    _say_labelled(output, "verified", f"{records}, {summary['problems']} damaged")


def _say_labelled(output: Output, label: str, text: str) -> None:
    _say(output, f"  {label:<15}{text}")


def _say(output: Output, text: str) -> None:
    if not output.as_json:
        output.line(text)
