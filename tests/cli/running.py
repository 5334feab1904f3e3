"""What the tests of `run` and its neighbours share: a program with workflows, and processes that run them."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = """
from pathlib import Path

from holdfast import Workflow

plain = Workflow("plain")


@plain.agent
def plan(ctx):
    print("a program may print")
    ctx.metrics(tokens=120, cost_usd=0.25, calls=2)
    return {"topics": ["kelp", "tide", "reef"], "tone": ctx.config.get("tone")}


@plain.agent(after=plan, each=lambda run: run.result("plan")["topics"])
def research(ctx, topic):
    ctx.output(topic)
    return f"{topic} {ctx.inputs.get('question')}"


@plain.agent(after=research)
def write(ctx):
    return {"found": ctx.result("research"), "tone": ctx.result("plan")["tone"]}


gated = Workflow("gated")


@gated.agent
def prepare(ctx):
    with open("ran.txt", "a") as told:
        told.write("prepare\\n")
    return "prepared"


@gated.agent(after=prepare)
def work(ctx):
    # Until somebody writes into the pipe of that name.
    return Path("gate").read_text()


@gated.agent(after=work)
def finish(ctx):
    return f"{ctx.result('prepare')} {ctx.result('work')}"


panel = Workflow("panel")


@panel.agent
def review(ctx):
    return "reviewed"


@panel.agent(after=review)
async def publish(ctx):
    answer = await ctx.approve("Publish it?", name="publish", pages=3)
    return {"granted": answer.granted, "by": answer.by, "note": answer.note, "value": answer.value}


twice = Workflow("twice")


@twice.agent(each=lambda run: ["a", "b"], key=str)
async def ask(ctx, item):
    return (await ctx.approve(f"Take {item}?", name="take")).granted


failing = Workflow("failing")


@failing.agent
def first(ctx):
    return 1


@failing.agent(after=first)
def last(ctx):
    if not Path("mended").exists():
        raise ValueError("no \\x1b[31mfuel")
    return 2


unsure = Workflow("unsure")


@unsure.agent(when=lambda run: 1 / 0)
def never(ctx):
    return None


leaving = Workflow("leaving")


@leaving.agent
async def leave(ctx):
    raise SystemExit(5)


number = 7
"""


def write_program(folder: Path, text: str = PROGRAM) -> str:
    """Put the program into a file whose name no other test has; answer that file's name."""
    name = f"flows_{secrets.token_hex(4)}.py"
    (folder / name).write_text(text)
    return name


class Running:
    """A process of the command line that runs a workflow, told by its events."""

    def __init__(self, folder: Path, *args: str) -> None:
        words = [sys.executable, "-m", "holdfast", *args, "--json", "--events"]
        # Errors go to a file: a pipe that nobody reads would hold the process up.
        with (folder / "errors.txt").open("a") as errors:
            self.process = subprocess.Popen(
                words, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment(folder)
            )
        self.told: list[dict[str, Any]] = []

    def until(self, event: str, **particulars: str) -> dict[str, Any]:
        """Read what is told until something has happened."""
        for one in self._lines():
            if one.get("event") == event and particulars.items() <= one.items():
                return one
        raise AssertionError(f"ended before {event}: {self.told}")

    def ended(self) -> tuple[int, dict[str, Any]]:
        """Wait for the end; answer the exit code and the result."""
        list(self._lines())
        return self.process.wait(60), self.told[-1] if self.told else {}

    def _lines(self) -> Iterator[dict[str, Any]]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.told.append(json.loads(line))
            yield self.told[-1]


@contextmanager
def running(folder: Path, *args: str) -> Iterator[Running]:
    """Run a workflow in a process of its own, which is gone afterwards whatever happens."""
    one = Running(folder, *args)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.wait()
        if one.process.stdout is not None:
            one.process.stdout.close()


def called(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Call the command line in a process of its own."""
    words = [sys.executable, "-m", "holdfast", *args]
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, env=environment(folder), timeout=60, check=False
    )


def environment(folder: Path) -> dict[str, str]:
    """Answer an environment without a store or a configuration of the machine's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    return {**kept, "XDG_CONFIG_HOME": str(folder / "config")}


def open_gate(folder: Path, text: str = "worked") -> None:
    """Let the agent go on that reads from the pipe; returns once it has opened it."""
    (folder / "gate").write_text(text)


@contextmanager
def heeded(number: signal.Signals) -> Iterator[None]:
    """Let a process that is started meanwhile begin with the default action of a signal."""
    # What is ignored is inherited: a shell that runs us in the background may have SIGINT ignored. A function
    # is not inherited, and so the default is.
    before = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(number, before)
