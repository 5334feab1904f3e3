"""A nightly batch: a thousand small workflows at once, in one process and one store, so many at a time.

Kill it wherever you like, and run it again; what was done stays done, what a crash left goes on:

    timeout --signal=KILL 3 python examples/nightly_batch.py
    python examples/nightly_batch.py

SIGTERM and Ctrl-C end it, too, once what was at work is recorded.

    python examples/nightly_batch.py 50 tonight      # how many, and under which name
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter
from datetime import date

import holdfast
from holdfast import AsyncCheckpointService, Context, RunOptions, RunResult, Workflow

STORE = os.environ.get("HOLDFAST_STORE", ".holdfast")
#: Workflows that are under way at a time; their commits share their syncs.
AT_ONCE = 200

team = Workflow("nightly-invoice")


@team.agent
async def read(ctx: Context) -> dict[str, int]:
    """Read what a customer used."""
    number = ctx.inputs.get("customer", 1)
    return {"customer": number, "hours": number * 7 % 40}


@team.agent(after=read)
async def price(ctx: Context) -> int:
    """Work out what that costs, in cents."""
    hours = ctx.result("read")["hours"]
    ctx.metrics(hours=hours)
    return int(hours * 8500)


@team.agent(after=price)
async def invoice(ctx: Context) -> str:
    """Write the invoice."""
    cents = ctx.result("price")
    return f"customer {ctx.result('read')['customer']}: {cents // 100}.{cents % 100:02d}"


async def run_one(
    service: AsyncCheckpointService, night: str, customer: int, room: asyncio.Semaphore
) -> RunResult:
    """Run the workflow of one customer when there is room, or go on with it."""
    async with room:
        return await team.run(
            service, f"{night}-{customer:04d}", {"customer": customer}, options=RunOptions(lease_seconds=60)
        )


async def run_all(count: int, night: str) -> list[RunResult]:
    """Run the workflows of all customers, telling how far it is."""
    room, results = asyncio.Semaphore(AT_ONCE), list[RunResult]()
    async with holdfast.open_async(STORE) as service:
        works = [run_one(service, night, customer, room) for customer in range(1, count + 1)]
        for finished in asyncio.as_completed(works):
            results.append(await finished)
            if len(results) % max(count // 4, 1) == 0:
                print(f"  {len(results):,} of {count:,}", flush=True)
    return results


def main() -> None:
    """Run the batch of a night."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    night = sys.argv[2] if len(sys.argv) > 2 else f"night-{date.today()}"
    began = time.monotonic()
    results = asyncio.run(run_all(count, night))
    seconds = time.monotonic() - began
    ended = Counter(str(result.status) for result in results)
    # A run that was over before has nothing left to do; one that a crash left has some results already.
    before = sum(result.ran == 0 for result in results)
    gone_on = sum(result.resumed and result.ran > 0 for result in results)
    print(", ".join(f"{number:,} {status}" for status, number in ended.items()))
    print(f"{before:,} were done before, {gone_on:,} went on where a crash left them")
    print(f"{count / seconds:,.0f} workflows a second")


if __name__ == "__main__":
    main()
