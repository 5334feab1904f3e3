"""The progress report of a run, written beside it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import holdfast
from holdfast import AgentFailedError
from holdfast.domain.event import Event
from holdfast.execution.context import Context
from holdfast.execution.engines.threads import Threads
from holdfast.execution.scribe import Scribe
from tests.execution.runs import chain, run

REPORT = """# wf-1

## plan

Look at kelp, then at tides.

---

## Kelp

It holds fast.

**Sources:**
- a rock

---
"""


def plan(ctx: Context) -> str:
    return "Look at kelp, then at tides."


def research(ctx: Context) -> str:
    ctx.report("Kelp", "It holds fast.", ["a rock"])
    return "not shown: the agent reported itself"


def test_each_agent_adds_a_section_its_own_or_what_it_answered(tmp_path: Path) -> None:
    with holdfast.open(f"file:{tmp_path}/store") as service:
        run(chain(plan, research), service, "wf-1")
        assert (tmp_path / "store" / "progress" / "wf-1.md").read_text() == REPORT
        assert service.progress.text("wf-1") == REPORT == service.progress.rebuild("wf-1")


def test_what_was_found_out_is_readable_if_nothing_else_ever_runs(tmp_path: Path) -> None:
    def fails(ctx: Context) -> None:
        raise RuntimeError("broken")

    with holdfast.open(f"file:{tmp_path}/store") as service, pytest.raises(AgentFailedError):
        run(chain(plan, research, fails), service, "wf-1")
    assert (tmp_path / "store" / "progress" / "wf-1.md").read_text() == REPORT


def test_everything_put_is_written_in_order_before_the_end() -> None:
    written: list[int] = []

    class Notebook:
        def report(self, events: list[Event]) -> None:
            written.extend(event.seq for event in events)

    async def main() -> None:
        scribe = Scribe(Notebook(), threads)
        await scribe.finish()
        for number in range(50):
            scribe.put([event(number)])
        await scribe.finish()

    def event(number: int) -> Event:
        return Event(number, holdfast.open("memory:").recording.now(), "REPORT_ADDED", "wf-1")

    threads = Threads(1)
    asyncio.run(main())
    assert written == list(range(50))
    threads.close()


def test_a_report_that_cannot_be_written_is_tried_again_with_the_next_section() -> None:
    written: list[int] = []

    class Broken:
        def report(self, events: list[Event]) -> None:
            if events[0].seq == 0:
                raise RuntimeError("no ink")
            written.extend(event.seq for event in events)

    async def main() -> None:
        scribe = Scribe(Broken(), threads)
        for number in range(2):
            scribe.put([Event(number, now, "REPORT_ADDED", "WF-1")])
            await scribe.finish()

    with holdfast.open("memory:") as service:
        now = service.recording.now()
    threads = Threads(1)
    asyncio.run(main())
    assert written == [1]
    threads.close()
