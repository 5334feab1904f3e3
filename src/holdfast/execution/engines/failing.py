"""What an agent raised that is no Exception: it fails by that, and ends neither its run nor its worker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from holdfast.execution.faults import said
from holdfast.execution.stopping import Stopped, Unwinding


def as_failure(fault: BaseException) -> RuntimeError | Unwinding:
    """Answer what an agent failed by, in words; of a group that ends it and is not its own, what ends it."""
    ending = _ending(fault) if isinstance(fault, BaseExceptionGroup) else None
    if ending is not None:
        return ending
    if isinstance(fault, SystemExit):
        return RuntimeError(f"the agent called sys.exit({fault.code!r})")
    if isinstance(fault, asyncio.CancelledError):
        return RuntimeError("the agent was cancelled from within")
    text = said(fault)
    told = f": {text}" if text else ""
    return RuntimeError(f"the agent raised {type(fault).__name__}{told}")


def _ending(group: BaseExceptionGroup[BaseException]) -> Unwinding | None:
    """Find what ends an agent that asked in tasks of its own; a failure beside a question weighs more."""
    unwinding, failures = group.split(Unwinding)
    found = [] if unwinding is None else list(_leaves(unwinding))
    stopped = next((one for one in found if isinstance(one, Stopped)), None)
    return stopped or (found[0] if found and failures is None else None)


def _leaves(group: BaseExceptionGroup[Unwinding]) -> Iterator[Unwinding]:
    for one in group.exceptions:
        if isinstance(one, BaseExceptionGroup):
            yield from _leaves(one)
        else:
            yield one
