"""A code review: a panel looks at a change at once, a person approves, and the merge happens once.

Kill it wherever you like, run it again, answer whenever you like, also while nothing runs:

    python examples/code_review.py                # ends as `waiting`, with the verdict of the panel
    python examples/code_review.py approve ann    # or: deny ann
    python examples/code_review.py                # goes on with the answer

Or: `holdfast run examples/code_review.py:team --id review-417`, and `holdfast approve review-417` elsewhere.

The reviewers are pretend ones, so that this runs offline and always says the same.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import holdfast
from holdfast import Context, Found, Retry, RunOptions, Workflow

STORE = os.environ.get("HOLDFAST_STORE", ".holdfast")
WORKFLOW_ID = "review-417"
#: Stands for the repository: one line for each merge, with the key that it was asked for with.
MERGES = Path(os.environ.get("MERGES", "merges.txt"))
CHANGE = """\
def transfer(account, amount):
    # TODO: what if amount is negative?
    account.balance -= amount
    log.info("transferred %s with token %s", amount, account.token)
"""

team = Workflow("code-review")


@team.agent
def fetch(ctx: Context) -> str:
    """Get the change that is to be reviewed."""
    change: str = ctx.inputs.get("change", CHANGE)
    return change


panel = team.parallel("panel", after=fetch)


@panel.agent
def correctness(ctx: Context) -> dict[str, Any]:
    """Look for what is unfinished."""
    return _review(ctx, {"TODO": "a question is left open"})


@panel.agent
def security(ctx: Context) -> dict[str, Any]:
    """Look for what must not be told."""
    return _review(ctx, {"token": "a credential goes into the log"})


@panel.agent
def style(ctx: Context) -> dict[str, Any]:
    """Look for what nobody wants to read."""
    return _review(ctx, {"lambda: lambda": "too clever"})


def _review(ctx: Context, patterns: Mapping[str, str]) -> dict[str, Any]:
    lines = ctx.result("fetch").splitlines()
    issues = [
        f"line {number}: {problem}"
        for number, line in enumerate(lines, 1)
        for pattern, problem in patterns.items()
        if pattern in line
    ]
    ctx.metrics(tokens=12 * len(lines), calls=1)
    ctx.confidence(0.6 if issues else 0.95)
    return {"reviewer": ctx.agent, "issues": issues}


@team.agent(after=panel)
def verdict(ctx: Context) -> dict[str, Any]:
    """Put the reviews together."""
    reviews = [ctx.result(name) for name in ("correctness", "security", "style")]
    issues = [f"{review['reviewer']}: {issue}" for review in reviews for issue in review["issues"]]
    advice = "mend first" if issues else "merge"
    ctx.decide(advice, rationale="; ".join(issues) or "no reviewer found anything", confidence=0.8)
    ctx.report("Verdict", "\n".join([f"The panel says: {advice}.", *issues]))
    return {"advice": advice, "issues": issues}


@team.agent(after=verdict, retry=Retry(attempts=3))
def merge(ctx: Context) -> dict[str, Any]:
    """Merge, if a person says so; the answer may take days."""
    found = ctx.result("verdict")
    answer = ctx.approve(f"The panel says: {found['advice']}. Merge?", name="merge", issues=found["issues"])
    if not answer:
        return {"merged": False, "by": answer.by, "note": answer.note}
    # Where the process died right here, nobody knows whether it happened: the repository is asked by the key.
    revision = ctx.effect("merge", merge_change, unknown="check", check=merged_before)
    return {"merged": True, "by": answer.by, "revision": revision}


def merge_change(key: str) -> str:
    """Change the world outside."""
    with MERGES.open("a", encoding="utf-8") as file:
        file.write(f"{key}\n")
    return key[-7:]


def merged_before(key: str) -> Found | None:
    """Tell whether the repository knows the key."""
    known = MERGES.read_text("utf-8").split() if MERGES.exists() else []
    return Found(key[-7:]) if key in known else None


def answer(word: str, person: str) -> None:
    """Leave an answer for whoever runs the workflow, now or later."""
    with holdfast.open(STORE) as service:
        service.requests.put(
            WORKFLOW_ID, "approval", actor=person, data={"name": "merge", "granted": word == "approve"}
        )
    print(f"{person} said: {word}")


def main() -> None:
    """Run the review until nothing is left to do but wait for an answer, or take an answer."""
    if sys.argv[1:]:
        answer(sys.argv[1], sys.argv[2])
        return
    result = team.run_sync(STORE, WORKFLOW_ID, options=RunOptions(waits=False))
    print(f"{result.status}: {result.kept} results were there, {result.ran} agents ran")
    for issue in result.results["verdict"]["issues"]:
        print(f"  {issue}")
    print("waiting for", *result.waiting) if result.waiting else print(result.value)


if __name__ == "__main__":
    main()
