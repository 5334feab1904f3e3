"""A workflow with everything in it, told to the outside world step by step, and what has to be true of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from holdfast import Context, Workflow
from holdfast.execution.effects import Found
from tests.process.outside import tell

TOPICS = ("kelp", "tide", "wind")
PARTS = ("read", "sort", "bind")
GATHERED = tuple(f"gather[{topic}]" for topic in TOPICS)
#: Which steps have to have a result before another one may begin.
BEFORE: dict[str, tuple[str, ...]] = {
    "order": ("plan",),
    **{step: ("order",) for step in GATHERED},
    "draft": GATHERED,
    "judge": ("draft",),
    "draft#2": ("judge",),
    "judge#2": ("draft#2",),
    "long": ("judge#2",),
    "leave": ("long",),
    "doubt": ("long",),
    "halt": ("long",),
    "write": ("leave", "doubt", "halt"),
    "write>calc": ("leave", "doubt", "halt"),
}
STEPS = ("plan", *BEFORE)
#: Effects that nobody may leave out, and one that may be left out once it is unknown.
SURE = ("order", *GATHERED, "draft", "draft#2", "doubt", "halt")
SKIPPED = "leave"


def make_team(outside: str, pace_seconds: float = 0.0) -> Workflow:
    """Declare the workflow; everything it does is told to who listens at a socket, at a pace."""
    team = Workflow("everything")
    hands = Hands(outside, pace_seconds)
    prepare = team.sequential("prepare")

    @prepare.agent
    def plan(ctx: Context) -> list[str]:
        hands.body(ctx)
        ctx.decide("three topics", "there are three", 0.9, ["two"])
        ctx.metrics(tokens=10, calls=1)
        ctx.remember(planned=True)
        return list(TOPICS)

    @prepare.agent
    def order(ctx: Context) -> Any:
        hands.body(ctx)
        ctx.decide("order paper")
        done = ctx.effect("order", hands.effect, ctx, unknown="retry")
        ctx.output(done, "order")
        return done

    @team.agent(after=prepare, each=lambda run: run.result("plan"), key=lambda topic: topic)
    async def gather(ctx: Context, topic: str) -> Any:
        hands.body(ctx)
        done = await ctx.effect("fetch", hands.effect_soon, ctx, unknown="retry")
        ctx.output({"topic": topic, "found": done})
        ctx.message(f"gathered {topic}")
        ctx.metrics(tokens=7, cost_usd=0.5)
        return done

    _declare_loop(team, hands)
    team.barrier("meeting")
    _declare_long(team, hands)
    _declare_doubts(team, hands)

    @team.agent(after="settle")
    def write(ctx: Context) -> dict[str, Any]:
        hands.body(ctx)
        ctx.decide("write it down", confidence=0.8)

        def calc(inner: Context, number: int) -> int:
            hands.body(inner)
            inner.decide("count twice")
            return number * 2

        return {
            "sum": ctx.spawn(calc, 21, name="calc"),
            "of": [*ctx.result("gather"), ctx.result("draft"), ctx.result("long")],
            "planned": ctx.shared["planned"],
        }

    return team


class Hands:
    """What the agents do outside."""

    def __init__(self, outside: str, pace_seconds: float) -> None:
        self._outside = outside
        self._pace_seconds = pace_seconds

    def body(self, ctx: Context, part: str = "") -> None:
        tell(self._outside, ctx.workflow_id, "body", what=f"{ctx.step_id}{part}")

    def effect(self, key: str | None, ctx: Context) -> Any:
        time.sleep(self._pace_seconds)
        answer = tell(self._outside, ctx.workflow_id, "effect", what=ctx.step_id, key=key)
        time.sleep(self._pace_seconds)
        return answer

    async def effect_soon(self, key: str | None, ctx: Context) -> Any:
        return await asyncio.to_thread(self.effect, key, ctx)

    def look(self, ctx: Context) -> Callable[[str], Found | None]:
        def check(key: str) -> Found | None:
            answer = tell(self._outside, ctx.workflow_id, "check", key=key)
            return None if answer is None else Found(answer)

        return check


def _declare_loop(team: Workflow, hands: Hands) -> None:
    loop = team.loop("improve", limit=4, after="gather")

    @loop.agent
    def draft(ctx: Context) -> Any:
        hands.body(ctx)
        done = ctx.effect("print", hands.effect, ctx, unknown="check", check=hands.look(ctx))
        return {"round": ctx.iteration, "printed": done, "after": ctx.feedback, "of": ctx.result("gather")}

    @loop.evaluator
    def judge(ctx: Context) -> dict[str, Any]:
        hands.body(ctx)
        ctx.confidence(0.5 if ctx.iteration < 2 else 0.9)
        ctx.decide(f"round {ctx.iteration} is read")
        return {"content": ctx.iteration >= 2, "score": ctx.iteration}


def _declare_long(team: Workflow, hands: Hands) -> None:
    @team.agent(after="meeting")
    def long(ctx: Context) -> list[str]:
        at = ctx.resumed_from
        done: list[str] = list(at.state) if at else []
        for part in PARTS[len(done) :]:
            hands.body(ctx, f"/{part}")
            done.append(part)
            ctx.milestone(part, done)
        return done


def _declare_doubts(team: Workflow, hands: Hands) -> None:
    settle = team.parallel("settle", after="long")

    @settle.agent
    def leave(ctx: Context) -> str:
        hands.body(ctx)
        ctx.effect("greet", hands.effect, ctx, unknown="skip")
        return "left"

    @settle.agent
    async def doubt(ctx: Context) -> Any:
        hands.body(ctx)
        return await ctx.effect("pay", hands.effect_soon, ctx, unknown="ask")

    @settle.agent
    def halt(ctx: Context) -> Any:
        hands.body(ctx)
        ctx.confidence(0.7)
        return ctx.effect("ship", hands.effect, ctx, unknown=ctx.config["in_doubt"])
