"""An agent that asks before it pays, with the SDK's scripted model, and what its tests share."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import Callable, Coroutine
from typing import Any

from agents import Agent, Runner, RunState, function_tool, set_tracing_disabled
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from holdfast.integrations.openai_agents import HoldfastRunVault, KeptRun

# Traces would go to a host outside.
set_tracing_disabled(True)

STORES = ("memory:", "file:store", "sqlite:store.db")
KEY = "env:TEST_VAULT_KEY"
os.environ["TEST_VAULT_KEY"] = secrets.token_hex(32)

#: What the tool has done.
PAID: list[str] = []


def run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine on a loop of its own."""
    return asyncio.run(work())


@function_tool(needs_approval=True)
def pay(to: str, amount: int) -> str:
    """Pay somebody."""
    PAID.append(f"{amount} to {to}")
    return f"{amount} to {to}"


def reply(call: Any) -> ModelStep:
    """Ask for each payment of the newest message, and then tell what came of them."""
    last = call.input[-1]
    if last.get("type") == "function_call_output":
        return ModelStep(output=[assistant_message(f"told: {last['output']}")])
    try:
        payments = json.loads(last["content"])
    except ValueError:
        return ModelStep(output=[assistant_message(f"{len(call.input)} items: {last['content']}")])
    calls = [
        function_call("pay", arguments, call_id=f"call-{number}")
        for number, arguments in enumerate(payments, 1)
    ]
    return ModelStep(output=calls)


def payer() -> Agent[Any]:
    """Make the agent."""
    return Agent(name="payer", model=ScriptedModel([ModelStep.respond(reply)] * 20), tools=[pay])


async def paused(*amounts: int, to: str = "Ann", **options: Any) -> RunState[Any, Any]:
    """Run the agent until it asks for so many payments."""
    asked = json.dumps([{"to": to, "amount": amount} for amount in amounts])
    result = await Runner.run(payer(), asked, **options)
    return result.to_state()


def keep(vault: HoldfastRunVault, *amounts: int, run_id: str = "r") -> KeptRun:
    """Keep a run that asks for payments."""

    async def work() -> Any:
        return await vault.keep(run_id, await paused(*amounts or (70,)))

    return run(work)


def answer(
    vault: HoldfastRunVault, call_id: str = "call-1", *, granted: bool = True, run_id: str = "r"
) -> KeptRun:
    """Answer a call as Bob."""
    return run(lambda: vault.answer(run_id, call_id, granted=granted, by="bob", reason="invoice 17"))


def go_on(vault: HoldfastRunVault, **options: Any) -> Any:
    """Take the run, go on with it, and keep what comes of that."""

    async def work() -> Any:
        agent = payer()
        result = await Runner.run(agent, await vault.take("r", agent, **options))
        await vault.keep("r", result.to_state())
        return result.final_output

    return run(work)
