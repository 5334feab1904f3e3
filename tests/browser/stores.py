"""Stores to look at: empty, small with something of everything, hostile, and large."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import holdfast
from holdfast import RunOptions, Workflow
from holdfast.cli import demo_team

#: What a page that forgot to escape would obey. The mark says which one it was.
HOSTILE = (
    "<script>window.__pwned=1</script>",
    "<img src=x onerror=window.__pwned=1>",
    '"><svg onload=window.__pwned=1>',
    "javascript:window.__pwned=1",
    "{{constructor.constructor('window.__pwned=1')()}}",
    "${window.__pwned=1}",
    "'-window.__pwned=1-'",
    "</textarea><script>window.__pwned=1</script>",
    "\u202egnp.exe\u2066",
)

orders = Workflow("orders")


@orders.agent
def fetch(ctx: Any) -> list[int]:
    """Answer the orders."""
    ctx.decide("three orders", rationale="those of today", confidence=0.8)
    ctx.metrics(tokens=300, cost_usd=0.01)
    return [1, 2, 3]


@orders.agent(after=fetch, each=lambda run: run.result("fetch"), key=str, concurrency=2)
def price(ctx: Any, order: int) -> int:
    """Answer a price."""
    ctx.message(f"order {order} is {order * 10}")
    return order * 10


@orders.agent(after=price)
def ship(ctx: Any) -> str:
    """Fail as the carrier does."""
    raise RuntimeError("the carrier does not answer")


payment = Workflow("payment")


@payment.agent
def prepare(ctx: Any) -> int:
    """Answer an amount."""
    return 70


@payment.agent(after=prepare)
def pay(ctx: Any) -> str:
    """Ask before paying."""
    answer = ctx.approve("Pay 70 to Ann?", name="pay", amount=70)
    return "paid" if answer.granted else "kept"


def small(url: str, keys: Path) -> None:
    """Fill a store with something of everything that people meet."""
    with holdfast.open(url, actor="ann", signing_key=str(keys), retain=False) as service:
        with contextlib.redirect_stdout(io.StringIO()):
            demo_team.team.run_sync(service, "kelp", options=_options(config={"thinking_seconds": 0.02}))
        with contextlib.suppress(Exception):
            orders.run_sync(service, "orders-17", options=_options())
        payment.run_sync(service, "payment-4", options=_options(waits=False))
        service.fork_workflow("kelp@5", "kelp-what-if")
        _chat(service, "support-chat")
        _damaged(service)
        service.acquire_lease("support-chat", "worker-1", ttl_seconds=0)
        service.audit.keeper.anchor(create_key=True)
        service.create_checkpoint("kelp-what-if", {"after": "the head"})


def _options(**more: Any) -> RunOptions:
    return RunOptions(handles_signals=False, **more)


def _chat(service: Any, workflow_id: str) -> None:
    state = holdfast.WorkflowState()
    for number in range(12):
        who = "user" if number % 2 == 0 else "assistant"
        state.messages = [*state.messages, {"role": who, "content": f"message {number}, " + "words " * 20}]
        state.context = {"topic": "tides", "turn": number, "image": b"\x89PNG" + bytes(range(256)) * 4}
        service.create_checkpoint(workflow_id, state, agent_id=who, stage_id="chat")


def _damaged(service: Any) -> None:
    for number in range(3):
        service.create_checkpoint("ledger", {"balance": number * 100})
    service.quarantine.put("ledger", 2, "the checksum does not fit")


def hostile(url: str) -> None:
    """Fill a store with text that a careless page would obey, wherever people may write text."""
    with holdfast.open(url, actor="eve", redact=False, retain=False) as service:
        for number, text in enumerate(HOSTILE):
            name = f"wf {number} {text}"[:200]
            state = holdfast.WorkflowState(context={text: text, "list": [text, {text: [text]}]})
            state.messages = [{"role": text, "content": text}]
            service.create_checkpoint(name, state, agent_id=text, stage_id=text)
            service.append_event(name, "NOTE", {"text": text, text: 1}, agent_id=text, step_id=text)
            service.record_decision(name, text, rationale=text, confidence=0.5, agent_id=text)
            state.context[text] = f"{text} again"
            service.create_checkpoint(name, state, agent_id=text, stage_id=text)
            service.audit.log_event(
                "NOTED", workflow_id=name, agent=text, facts={"said": text}, payload={text: text}
            )
            if number == 0:
                service.quarantine.put(name, 1, text)


def large(url: str, count: int) -> None:
    """Fill a store with one run of so many checkpoints by a few agents."""
    agents = ("planner", "researcher", "writer", "critic", "editor")
    with holdfast.open(url, actor="ann", retain=False, audit=False) as service:
        for number in range(count):
            agent = agents[number % len(agents)]
            state, stage = {"step": number, "by": agent}, f"stage-{number // 2000}"
            service.create_checkpoint("long-run", state, agent_id=agent, stage_id=stage, wait=False)
        service.create_checkpoint("wide-graph", _wide_plan())
        service.create_checkpoint(
            "big-value", {"text": "a" * 300_000, "image": bytes(range(256)), "small": 1}
        )
        service.create_checkpoint("big-value", {"list": list(range(1000))})
        service.flush()


def _wide_plan(stages: int = 50, agents: int = 10) -> holdfast.WorkflowState:
    """Plan so many stages of so many agents, each after two of the stage before."""
    listed: list[dict[str, Any]] = []
    for number in range(stages):
        before = [f"a-{number - 1}-{at}" for at in range(agents)] if number else []
        listed.append(
            {
                "name": f"stage-{number}",
                "kind": "parallel",
                "layer": number,
                "after": [f"stage-{number - 1}"] if number else [],
                "agents": [
                    {"name": f"a-{number}-{at}", "after": [*before[at : at + 1], *before[at - 1 : at]]}
                    for at in range(agents)
                ],
            }
        )
    return holdfast.WorkflowState(dag_structure={"stages": listed})
