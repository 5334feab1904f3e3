"""The team of `holdfast demo`: pretend agents in a process of their own, which the demo kills.

A plan, research on three topics at once, drafts until an evaluator is content, and a report that is posted.
What happens is told as lines of JSON on standard output; whoever listens there is the world outside.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.execution.options import RunOptions
from holdfast.execution.triggers import Triggers
from holdfast.execution.workflow import Workflow

if TYPE_CHECKING:
    from holdfast.execution.context import Context
    from holdfast.execution.outcome import RunResult

QUESTION = "How does kelp survive a storm?"
THINKING_SECONDS = 0.05
#: Longer than anybody watches: a thought that is never finished.
_ENDLESS_SECONDS = 600.0
_USD_PER_TOKEN = 0.000002
#: What the pretend model finds out, by topic.
NOTES = {
    "grip": (
        "a holdfast is no root: it only holds on",
        "its branching fingers cling to bare rock",
        "new fingers grow over the old ones",
    ),
    "stalk": (
        "the stalk bends with a wave and swings back",
        "it stretches before it breaks",
        "floats keep its blades up in the light",
    ),
    "blades": (
        "blades fold together in fast water",
        "folded blades catch less of the current",
        "a torn blade regrows from its base",
    ),
}
#: Every step, in the order in which it is told; those of the research may end in any.
STEPS = (
    "plan",
    *(f"research[{topic}]" for topic in NOTES),
    "draft",
    "judge",
    "draft#2",
    "judge#2",
    "publish",
)

# How much memory is in use is not the demo's to decide, and must not change what it prints.
team = Workflow("kelp", triggers=Triggers(memory_pressure=None))
#: What the agents of this process have to say about their results, by step.
_said: dict[str, str] = {}


async def think(ctx: Context, about: str) -> None:
    """Wait as for the answer of a model; where the demo wants to pull the plug, for ever."""
    if f"{ctx.step_id} {about}" == ctx.config.get("endless"):
        tell("thinking", ctx.step_id)
        await asyncio.sleep(_ENDLESS_SECONDS)
    await asyncio.sleep(ctx.config.get("thinking_seconds", THINKING_SECONDS))
    tokens = 100 + len(about)
    ctx.metrics(tokens=tokens, cost_usd=tokens * _USD_PER_TOKEN, calls=1)


@team.agent
async def plan(ctx: Context) -> list[str]:
    """Decide what to look into."""
    await think(ctx, QUESTION)
    topics = list(NOTES)
    _said[ctx.step_id] = f"{len(topics)} topics: {', '.join(topics)}"
    ctx.decide(_said[ctx.step_id], rationale="each part meets the waves differently", confidence=0.9)
    return topics


@team.agent(after=plan, each=lambda run: run.result("plan"), key=str, concurrency=2)
async def research(ctx: Context, topic: str) -> list[str]:
    """Take notes on one topic, with a milestone after each."""
    notes: list[str] = ctx.resumed_from.state if ctx.resumed_from else []
    began_with = len(notes)
    for note in NOTES[topic][began_with:]:
        await think(ctx, note)
        notes.append(note)
        await ctx.milestone(f"{len(notes)} of {len(NOTES[topic])} notes", notes)
    ctx.confidence(0.85)
    ctx.report(topic.capitalize(), "; ".join(notes), [f"the sea, on {topic}"])
    _said[ctx.step_id] = f"note {len(notes)}: {notes[-1]}" if began_with else notes[0]
    return notes


improve = team.loop("improve", limit=3, after=research)


@improve.agent
async def draft(ctx: Context) -> list[str]:
    """Write one line for each topic, and an end once the evaluator misses it."""
    await think(ctx, "a draft")
    lines = ["hold on to something solid", "bend and come back", "lose little and regrow it"]
    is_asked = ctx.feedback is not None and "no end" in ctx.feedback["issues"]
    _said[ctx.step_id] = "the same, with an end" if is_asked else "one line for each topic"
    return [*lines, "hold fast, bend, and start again"] if is_asked else lines


@improve.evaluator
async def judge(ctx: Context) -> dict[str, Any]:
    """Say what the draft lacks."""
    await think(ctx, "a judgement")
    issues = [] if len(ctx.result("draft")) > len(NOTES) else ["no end"]
    score = 0.9 if not issues else 0.6
    ctx.confidence(score)
    if not issues:
        ctx.decide("publish it", rationale="nothing is missing", confidence=score)
    _said[ctx.step_id] = f"{score}, content" if not issues else f"{score}, not content: {issues[0]}"
    return {"content": not issues, "score": score, "issues": issues}


@team.agent(after=improve)
async def publish(ctx: Context) -> str:
    """Post the report, which must happen once, and think about it for a while."""
    report = ". ".join(ctx.result("draft"))
    await ctx.effect("post", post, report)
    await think(ctx, "what readers will say")
    ctx.output(report, name="report")
    _said[ctx.step_id] = f"report: {ctx.result('draft')[-1]}"
    return report


def post(key: str, report: str) -> int:
    """Change the world outside: whoever listens counts."""
    tell("posted", key)
    return len(report)


def tell(what: str, step: str, **more: Any) -> None:
    """Say something to whoever started this process."""
    sys.stdout.write(json.dumps({"say": what, "step": step, **more}) + "\n")
    sys.stdout.flush()


def hear(kind: str, told: Mapping[str, Any]) -> None:
    """Pass on what happens to agents."""
    if kind == "agent_started":
        tell("begin", told["step_id"])
    elif kind == "agent_completed":
        tell("done", told["step_id"], text=_said[told["step_id"]])


def main(
    store: str, workflow_id: str, endless: str | None = None, thinking_seconds: float = THINKING_SECONDS
) -> RunResult:
    """Run the team, or go on with it, until everything is done or somebody pulls the plug.

    Args:
        store: where it is recorded.
        workflow_id: the run.
        endless: step and thought that never ends, so that the plug can be pulled there.
        thinking_seconds: how long all others take.
    """
    config = {"endless": endless, "thinking_seconds": thinking_seconds}
    return team.run_sync(store, workflow_id, options=RunOptions(subscribers=(hear,), config=config))


if __name__ == "__main__":
    # The store is in the environment.
    main(os.environ["HOLDFAST_STORE"], sys.argv[1], next(iter(sys.argv[2:]), None))
