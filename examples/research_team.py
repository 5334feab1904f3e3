"""A research team: a plan, research on several topics at once, drafts until a judge is content, a report.

Kill it wherever you like, and run it again; it goes on from what was committed:

    timeout --signal=KILL 1.5 python examples/research_team.py
    python examples/research_team.py

The model is a pretend one, so that this runs offline and always says the same.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from typing import Any

from holdfast import Context, Retry, RunOptions, Workflow

STORE = os.environ.get("HOLDFAST_STORE", ".holdfast")
QUESTION = "How does a city stay cool in summer?"
THINKING_SECONDS = float(os.environ.get("THINKING_SECONDS", "0.2"))
USD_PER_TOKEN = 0.000002

#: What the pretend model finds, by topic: a finding, and where it says it found it.
LIBRARY = {
    "trees": [
        ("A row of trees shades the street and the walls behind it.", "Streets and Shade, p. 12"),
        ("Leaves give off water, and that takes heat out of the air.", "Streets and Shade, p. 31"),
    ],
    "roofs": [
        ("A white roof sends back most of the light that a black one keeps.", "Roofs of the South, p. 4"),
        ("A planted roof is cooler still, as long as it is watered.", "Roofs of the South, p. 9"),
    ],
    "water": [
        ("Ponds and canals stay cooler than stone through the day.", "Water in Towns, p. 77"),
        ("At night they give the warmth back, so they help less then.", "Water in Towns, p. 80"),
    ],
    "wind": [
        ("Wide streets along the wind carry warm air out of the town.", "Building with Wind, p. 15"),
        ("One high building across such a street stops it.", "Building with Wind, p. 16"),
    ],
}

team = Workflow("research-team")


async def ask_model(text: str) -> dict[str, Any]:
    """Think for a while, and say what that cost."""
    await asyncio.sleep(THINKING_SECONDS)
    return {"text": text, "tokens": 40 + 3 * len(text.split())}


def pay(ctx: Context, *answers: Mapping[str, Any]) -> None:
    """Count what answers of the model cost."""
    tokens = sum(answer["tokens"] for answer in answers)
    ctx.metrics(tokens=tokens, cost_usd=tokens * USD_PER_TOKEN, calls=len(answers))


@team.agent
async def plan(ctx: Context) -> list[str]:
    """Decide which topics to look into."""
    question = ctx.inputs.get("question", QUESTION)
    answer = await ask_model(f"topics for: {question}")
    topics = list(LIBRARY)
    ctx.decide(
        f"look into {', '.join(topics)}",
        rationale="each of them works without the others",
        confidence=0.9,
        alternatives=["ask about one topic at a time"],
    )
    pay(ctx, answer)
    return topics


@team.agent(
    after=plan,
    each=lambda run: run.result("plan"),
    key=str,
    concurrency=2,
    retry=Retry(attempts=3),
    timeout_seconds=60,
)
async def research(ctx: Context, topic: str) -> list[dict[str, Any]]:
    """Read everything on one topic; after each source comes a milestone, where a killed attempt goes on."""
    found: list[dict[str, Any]] = ctx.resumed_from.state if ctx.resumed_from else []
    sources = LIBRARY[topic]
    for finding, source in sources[len(found) :]:
        answer = await ask_model(finding)
        found.append({**answer, "source": source})
        await ctx.milestone(f"read {source}", found)
        ctx.progress(len(found) / len(sources))
    pay(ctx, *found)
    ctx.confidence(0.85)
    ctx.report(topic.capitalize(), " ".join(one["text"] for one in found), [one["source"] for one in found])
    return found


improve = team.loop("improve", limit=4, after=research)


@improve.agent
async def draft(ctx: Context) -> str:
    """Put the findings together, and mend what the evaluator found wrong with the last draft."""
    wanted = ctx.feedback["issues"] if ctx.feedback else []
    lines = []
    for topic, found in zip(ctx.result("plan"), ctx.result("research"), strict=True):
        cited = f" ({found[0]['source']})" if "name the sources" in wanted else ""
        lines.append(f"{topic}: {found[0]['text']}{cited}")
        if "tell the limits" in wanted:
            lines.append(f"  but: {found[1]['text']}")
    answer = await ask_model("\n".join(lines))
    pay(ctx, answer)
    return str(answer["text"])


@improve.evaluator
async def judge(ctx: Context) -> dict[str, Any]:
    """Say what is missing; in each round one thing less is."""
    text = ctx.result("draft")
    checks = {"name the sources": "p. " in text, "tell the limits": "but: " in text}
    answer = await ask_model("is this good enough?")
    pay(ctx, answer)
    asked_before = [issue for told in ctx.history for issue in told["evaluation"]["issues"]]
    missing = [issue for issue, is_met in checks.items() if not is_met][:1]
    score = sum(checks.values()) / len(checks)
    ctx.confidence(0.5 + score * 0.4)
    return {"content": not missing, "score": score, "issues": asked_before + missing if missing else []}


@team.agent(after=improve)
async def write(ctx: Context) -> str:
    """Write the report."""
    answer = await ask_model(f"{ctx.inputs.get('question', QUESTION)}\n\n{ctx.result('draft')}")
    pay(ctx, answer)
    ctx.output(answer["text"], name="report")
    return str(answer["text"])


def show(kind: str, told: Mapping[str, Any]) -> None:
    """Print what happens, as it happens."""
    if kind == "run_started" and told["resumed"]:
        print("going on with a run that was begun before")
    elif kind == "agent_started" and told["attempt"] > 1:
        print(f"  {told['step_id']}: begun again")
    elif kind == "agent_completed":
        print(f"  {told['step_id']}: done", flush=True)


def main() -> None:
    """Run the team under the id that was given, or go on with it."""
    workflow_id = sys.argv[1] if len(sys.argv) > 1 else "cool-city"
    result = team.run_sync(
        STORE, workflow_id, {"question": QUESTION}, options=RunOptions(subscribers=(show,))
    )
    print(f"\n{result.value}\n")
    used = f"{result.metrics['tokens']:,} tokens, {result.metrics['cost_usd']:.4f} USD"
    print(f"{result.status}: {result.kept} results were there, {result.ran} agents ran; {used}")


if __name__ == "__main__":
    main()
