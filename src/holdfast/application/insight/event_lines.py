"""Events by the beginnings of their lines: what happened when is there, and most need not be read further."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from holdfast.application.kit import Kit
from holdfast.application.secrecy.sealing import read_event
from holdfast.domain.event import Event, decode_event
from holdfast.domain.ids import GENESIS

_START = re.compile(rb'\{"seq":([0-9]{1,18}),"ts":"([^"]*)","type":"([^"\\]*)"')
_AGENT = re.compile(rb'"agent":"([^"\\]*)"')
#: The name stands before everything that may be long.
_AGENT_WITHIN = 1024


class EventLine(NamedTuple):
    """An event as its line begins, opened where its type was asked for."""

    seq: int
    at: str
    type: str
    agent: str | None
    event: Event | None


def event_lines(kit: Kit, workflow_id: str, after: int, opened: Collection[str]) -> Iterator[EventLine]:
    """Yield the events after one in order; those of some types are opened, and none is verified.

    Raises:
        CheckpointCorruptError: one that was to be opened is no event.
    """
    before = b""
    for line in kit.store.events(workflow_id, after=max(after - 1, 0)):
        found = _START.match(line)
        if found and int(found[1]) > after:
            type = found[3].decode("utf-8", "replace")
            event = _opened(kit, workflow_id, line, before) if type in opened else None
            yield EventLine(int(found[1]), found[2].decode("ascii", "replace"), type, _agent_in(line), event)
        before = line


def _agent_in(line: bytes) -> str | None:
    found = _AGENT.search(line, 0, _AGENT_WITHIN)
    return found[1].decode("utf-8", "replace") if found else None


def _opened(kit: Kit, workflow_id: str, line: bytes, before: bytes) -> Event:
    event = decode_event(line, None)
    previous = decode_event(before, None).hash if before else GENESIS if event.seq == 1 else None
    return read_event(kit.vault, event, workflow_id, previous)
