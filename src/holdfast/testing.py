"""Doubles for our tests and yours: time that stands still, ids that count, a store that fails on demand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from holdfast.adapters.memory import MemoryStore
from holdfast.domain.audit_entry import AuditEntry, TrailHead
from holdfast.domain.errors import CheckpointWriteError
from holdfast.domain.record import Commit, Entry, Head, Keyframe, KeyframeEntry, Lease, Removal
from holdfast.ports import Finding, Store


class FixedClock:
    """Tells the time it was set to, a step later each time if given one."""

    def __init__(
        self, start: datetime = datetime(2026, 1, 11, 12, tzinfo=UTC), step: timedelta = timedelta()
    ) -> None:
        self.moment = start
        self.step = step

    def now(self) -> datetime:
        moment = self.moment
        self.moment += self.step
        return moment

    def advance(self, by: timedelta) -> None:
        """Move on."""
        self.moment += by


class SequentialIds:
    """Counts: 00000000-0000-4000-8000-000000000001 and so on."""

    def __init__(self) -> None:
        self._last = 0

    def new(self) -> str:
        self._last += 1
        return f"00000000-0000-4000-8000-{self._last:012d}"


class FailingStore:
    """A store around a store: fails or alters calls on demand, and counts them."""

    def __init__(self, store: Store | None = None) -> None:
        self.store: Store = store or MemoryStore()
        self.calls: Counter[str] = Counter()
        self._failures: dict[str, list[Exception]] = {}
        self._changes: dict[str, Callable[[Any], Any]] = {}

    def fail(self, method: str, error: Exception | None = None, *, times: int = 1) -> None:
        """Make the next calls of a method raise instead of reaching the store."""
        problem = error or CheckpointWriteError(f"{method} was told to fail")
        self._failures.setdefault(method, []).extend([problem] * times)

    def alter(self, method: str, change: Callable[[Any], Any] | None) -> None:
        """Pass every answer of a method through a function; None stops that."""
        if change is None:
            self._changes.pop(method, None)
        else:
            self._changes[method] = change

    def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        self.calls[method] += 1
        if self._failures.get(method):
            raise self._failures[method].pop(0)
        answer = getattr(self.store, method)(*args, **kwargs)
        change = self._changes.get(method)
        return answer if change is None else change(answer)

    @property
    def url(self) -> str:
        return self.store.url

    @property
    def read_only(self) -> bool:
        return self.store.read_only

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        outcomes: list[Exception | None] = self._call("commit", commits)
        return outcomes

    def head(self, workflow_id: str) -> Head:
        head: Head = self._call("head", workflow_id)
        return head

    def workflows(self) -> Iterator[str]:
        return iter(self._call("workflows"))

    def entries(self, workflow_id: str, *, newest_first: bool = False) -> Iterator[Entry]:
        return iter(self._call("entries", workflow_id, newest_first=newest_first))

    def find(self, uuid_prefix: str) -> list[tuple[str, Entry]]:
        return list(self._call("find", uuid_prefix))

    def records(self, workflow_id: str, first: int, last: int) -> Iterator[bytes]:
        return iter(self._call("records", workflow_id, first, last))

    def keyframes(self, workflow_id: str) -> list[KeyframeEntry]:
        return list(self._call("keyframes", workflow_id))

    def newest_keyframe(self, workflow_id: str, through: int) -> KeyframeEntry | None:
        return cast("KeyframeEntry | None", self._call("newest_keyframe", workflow_id, through))

    def keyframe(self, workflow_id: str, sequence: int) -> bytes:
        return bytes(self._call("keyframe", workflow_id, sequence))

    def put_keyframe(self, workflow_id: str, keyframe: Keyframe) -> None:
        self._call("put_keyframe", workflow_id, keyframe)

    def events(self, workflow_id: str, *, after: int = 0) -> Iterator[bytes]:
        return iter(self._call("events", workflow_id, after=after))

    def has_blob(self, sha256: str) -> bool:
        return bool(self._call("has_blob", sha256))

    def blob(self, sha256: str) -> bytes:
        return bytes(self._call("blob", sha256))

    def evidence(self, workflow_id: str, sequence: int) -> Iterator[tuple[str, bytes]]:
        return iter(self._call("evidence", workflow_id, sequence))

    def remove(self, workflow_id: str, removal: Removal) -> int:
        return int(self._call("remove", workflow_id, removal))

    def trail_head(self, session_id: str) -> TrailHead:
        head: TrailHead = self._call("trail_head", session_id)
        return head

    def sessions(self) -> Iterator[str]:
        return iter(self._call("sessions"))

    def trail(self, session_id: str, *, after: int = 0) -> Iterator[bytes]:
        return iter(self._call("trail", session_id, after=after))

    def payload(self, session_id: str, seq: int) -> bytes | None:
        payload: bytes | None = self._call("payload", session_id, seq)
        return payload

    def integrate(self) -> int:
        return int(self._call("integrate"))

    def leaves(self, *, after: int = 0) -> Iterator[bytes]:
        return iter(self._call("leaves", after=after))

    def waiting(self) -> Iterator[bytes]:
        return iter(self._call("waiting"))

    def place(self, session_id: str, seq: int) -> int | None:
        index: int | None = self._call("place", session_id, seq)
        return index

    def file(self, name: str) -> bytes | None:
        data: bytes | None = self._call("file", name)
        return data

    def files(self, prefix: str) -> Iterator[str]:
        return iter(self._call("files", prefix))

    def acquire(
        self, workflow_id: str, owner: str, ttl_seconds: float, audit: Sequence[AuditEntry] = ()
    ) -> Lease:
        granted: Lease = self._call("acquire", workflow_id, owner, ttl_seconds, audit)
        return granted

    def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
        renewed: Lease = self._call("renew", lease, ttl_seconds)
        return renewed

    def release(self, lease: Lease, audit: Sequence[AuditEntry] = ()) -> None:
        self._call("release", lease, audit)

    def lease(self, workflow_id: str) -> Lease | None:
        lease: Lease | None = self._call("lease", workflow_id)
        return lease

    def check(self) -> Iterator[Finding]:
        return iter(self._call("check"))

    def stats(self) -> dict[str, Any]:
        return dict(self._call("stats"))

    def settle(self) -> None:
        self._call("settle")

    def close(self) -> None:
        self._call("close")
