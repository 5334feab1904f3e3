"""What an agent raised that is no Exception: it fails by that, and ends neither its run nor its worker."""

from __future__ import annotations

import asyncio

from holdfast.execution.faults import said


def as_failure(fault: BaseException) -> RuntimeError:
    """Answer what an agent failed by, in words."""
    if isinstance(fault, SystemExit):
        return RuntimeError(f"the agent called sys.exit({fault.code!r})")
    if isinstance(fault, asyncio.CancelledError):
        return RuntimeError("the agent was cancelled from within")
    text = said(fault)
    told = f": {text}" if text else ""
    return RuntimeError(f"the agent raised {type(fault).__name__}{told}")
