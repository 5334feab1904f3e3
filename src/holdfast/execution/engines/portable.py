"""Errors on their way from one process to another."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from traceback import format_exception

from holdfast.application.recovery.statuses import shortened
from holdfast.execution.faults import shown

_TRACE_CHARS = 4000


class RemoteAgentError(Exception):
    """An agent failed on a worker with an error that could not travel; tells what it was."""


def portable(fault: Exception, hidden: Callable[[str, int], str] = shortened) -> Exception:
    """Answer an error as it can travel, with its trace in words.

    Args:
        fault: the error.
        hidden: hides the secrets of a text, and cuts it; the store knows how.
    """
    trace = hidden("".join(format_exception(fault)), _TRACE_CHARS)
    fault.add_note(f"On a worker:\n{trace}")
    try:
        # Many errors can be sent and not be received: those that are made of something else than their text.
        ForkingPickler.loads(ForkingPickler.dumps(fault))
    except Exception:
        return RemoteAgentError(f"{shown(fault)}\n{trace}")
    return fault
