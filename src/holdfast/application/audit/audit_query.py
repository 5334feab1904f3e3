"""Which audit entries are asked for: most lines are passed over by their bytes, without being read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from holdfast.domain import plainjson
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.time import timestamp_text

_TIME = re.compile(rb'"ts":"([^"]*)"')


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """What entries must have; None and nothing stand for anything.

    Attributes:
        event_types: one of these types.
        after, before: made later, or earlier, than that.
    """

    session_id: str | None = None
    event_types: tuple[str, ...] = ()
    after: datetime | None = None
    before: datetime | None = None
    agent: str | None = None
    workflow: str | None = None
    actor: str | None = None
    outcome: str | None = None

    def matches(self, entry: AuditEntry) -> bool:
        """Tell whether an entry is asked for."""
        return (
            self.session_id in (None, entry.session_id)
            and (not self.event_types or entry.type in self.event_types)
            and (self.after is None or entry.timestamp > self.after)
            and (self.before is None or entry.timestamp < self.before)
            and self.agent in (None, entry.agent)
            and self.workflow in (None, entry.workflow_id)
            and self.actor in (None, entry.actor)
            and self.outcome in (None, entry.outcome)
        )

    def candidates(self, lines: Iterable[bytes]) -> Iterable[bytes]:
        """Leave out lines that cannot be asked for; those that are left may still not be."""
        named = {
            "session": self.session_id,
            "agent": self.agent,
            "workflow": self.workflow,
            "actor": self.actor,
            "outcome": self.outcome,
        }
        needed = [_field(name, text) for name, text in named.items() if text is not None]
        types = [_field("type", type) for type in self.event_types]
        after = timestamp_text(self.after).encode() if self.after else b""
        before = timestamp_text(self.before).encode() if self.before else b""
        for line in lines:
            if needed and not all(part in line for part in needed):
                continue
            if types and not any(part in line for part in types):
                continue
            found = _TIME.search(line) if after or before else None
            if found and (found[1] <= after or (before and found[1] >= before)):
                continue
            yield line


def _field(name: str, text: str) -> bytes:
    """Spell a field as it stands in a line."""
    return f'"{name}":'.encode() + plainjson.dumps(str(text))
