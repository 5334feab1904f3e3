"""A small team for any engine: what its agents do outside is counted in a file, one line for each call."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

from holdfast import Workflow
from holdfast.execution.effects import Found

TOPICS = ("kelp", "tide", "sand")


def mark(folder: str, *words: Any) -> None:
    """Add a line to what happened, in one write: also a process that is killed next has said it."""
    line = " ".join(str(word) for word in words) + "\n"
    handle = os.open(Path(folder) / "happened", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)


def happened(folder: Path, *words: str) -> list[list[str]]:
    """Read the lines that begin so."""
    path = folder / "happened"
    lines = [line.split(" ") for line in path.read_text().splitlines()] if path.exists() else []
    return [line for line in lines if line[: len(words)] == list(words)]


def wait_for(folder: str | Path, name: str) -> str:
    """Wait until somebody has left a file."""
    path = Path(folder) / name
    while not path.exists():
        time.sleep(0.01)
    return path.read_text()


def leave(folder: str | Path, name: str, text: str = "") -> None:
    """Leave a file, whole from its first moment on."""
    path = Path(folder) / name
    new = path.with_name(f".{name}")
    new.write_text(text)
    new.replace(path)


def fetch(key: str, folder: str, topic: str) -> str:
    mark(folder, "effect", key, topic)
    return f"all about {topic}"


def look(folder: str, key: str) -> Found | None:
    """Ask the outside whether an effect happened."""
    lines = happened(Path(folder), "effect", key)
    return Found(f"all about {lines[0][2]}") if lines else None


def plan(ctx: Any) -> dict[str, Any]:
    mark(ctx.inputs["folder"], "plan", ctx.attempt)
    ctx.decide("three topics", "they are there", 0.9, ["one"])
    return {"topics": list(TOPICS)}


def research(ctx: Any, topic: str) -> dict[str, Any]:
    folder = ctx.inputs["folder"]
    mark(folder, "research", topic, ctx.attempt, os.getpid())
    begun = ctx.resumed_from
    if begun is None:
        found = ctx.effect(
            "fetch", fetch, folder, topic, unknown="check", check=lambda key: look(folder, key)
        )
        ctx.milestone("fetched", {"found": found})
    else:
        mark(folder, "resumed", topic, begun.name)
        found = begun.state["found"]
    if ctx.inputs.get("stops_at") == topic and begun is None:
        leave(folder, "at", str(os.getpid()))
        wait_for(folder, "go")
    ctx.decide(f"take {topic}", confidence=0.8)
    ctx.output(found, topic)
    ctx.message(f"{topic} is done")
    ctx.metrics(tokens=len(topic), cost_usd=0.5)
    ctx.confidence(0.7)
    ctx.artifact(f"{topic}.md")
    ctx.remember(**{topic: len(found)})
    ctx.report(topic, f"About {topic}: {found}.", [f"https://example.com/{topic}"])
    mark(folder, "researched", topic, ctx.attempt)
    return {"topic": topic, "found": found, "plan": ctx.result("plan")["topics"]}


def buy(ctx: Any) -> str:
    """Change something outside, with the ledger or without, and be killed after it."""
    folder = ctx.inputs["folder"]
    if ctx.inputs["has_ledger"]:
        ctx.effect("buy", fetch, folder, "boat")
    else:
        fetch("no-key", folder, "boat")
    if ctx.attempt == 1:
        leave(folder, "at", str(os.getpid()))
        wait_for(folder, "go")
    return "bought"


async def write(ctx: Any) -> str:
    folder = ctx.inputs["folder"]
    mark(folder, "write", ctx.attempt)
    # Whoever hunts a researcher may hit its worker while it does this: then nobody is there to be asked.
    stored = await ctx.effect(
        "publish", fetch, folder, "report", unknown="check", check=lambda key: look(folder, key)
    )
    return f"{stored}: {[one['found'] for one in ctx.result('research')]} {sorted(ctx.shared)}"


def team(engine: Any = None, **options: Any) -> Workflow:
    """Declare the team, with its researchers and its writer on an engine, or all in this process."""
    workflow = Workflow("team", engines={} if engine is None else {"there": engine})
    there: dict[str, Any] = {} if engine is None else {"engine": "there"}
    workflow.agent(plan)
    workflow.agent(after=plan, each=lambda run: run.result("plan")["topics"], key=str, **there, **options)(
        research
    )
    workflow.agent(after=research, **there)(write)
    return workflow


def repeated(folder: Path) -> list[str]:
    """Name effects that happened twice."""
    effects = Counter(line[1] for line in happened(folder, "effect"))
    return [f"effect {name} happened {count} times" for name, count in effects.items() if count > 1]
