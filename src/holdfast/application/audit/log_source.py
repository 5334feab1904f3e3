"""The log of a store as it is verified: what cannot even be read is a fault like any other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from holdfast.application.audit.gone_payloads import GonePayloads
from holdfast.application.audit.log_keeping import CHECKPOINT_FILE, VKEYS_FILE, LogKeeper
from holdfast.application.audit.log_name import ORIGIN_FILE
from holdfast.application.audit.log_tiles import SIZE_FILE
from holdfast.application.audit.missing import Missing
from holdfast.domain.audit_entry import TrailHead
from holdfast.domain.errors import CheckpointCorruptError, CheckpointError
from holdfast.domain.log_check import LogSource
from holdfast.domain.tiles import Tile
from holdfast.domain.trail import read_fields
from holdfast.domain.trail_check import Fault, Kind
from holdfast.ports import Store

T = TypeVar("T")

#: Told how many entries are verified, and how many there were at the beginning.
OnProgress = Callable[[int, int], None]

_PROGRESS_STEP = 4096
#: Stands for stored bytes that cannot be read: no tile and no payload is empty.
_UNREADABLE = b""


def silently(done: int, total: int) -> None:
    """Tell nobody."""


class StoreSource:
    """Reads a store for a verification, from start to end, and remembers what was unreadable."""

    def __init__(self, store: Store, keeper: LogKeeper, on_progress: OnProgress = silently) -> None:
        self._store = store
        self._keeper = keeper
        self._on_progress = on_progress
        self._unreadable: list[Fault] = []
        self._missing = Missing()
        self._gone = GonePayloads()
        #: The last entry of each session that was heard.
        self._heard: dict[str, int] = {}

    def open(self, *, payloads: bool = False) -> LogSource:
        """Begin; `payloads` reads these, too, one by one."""
        # What is compared with the entries is read before them: they may grow meanwhile, and never shrink.
        trail_heads = list(self._trail_heads())
        tree_size, tree_root = self._keeper.tiles.standing()
        heads = self._heads()
        self._look_at_names(heads, tree_root)
        total = self._store.integrate()
        return LogSource(
            leaves=self._counted(self._guarded(self._store.leaves()), total),
            waiting=self._guarded(self._store.waiting()),
            heads=heads,
            read_tile=self._read_tile,
            read_payload=self._read_payload if payloads else None,
            tree_size=tree_size,
            tree_root=tree_root,
            trail_heads=trail_heads,
            hear=self._hear,
            faults=self._found(),
        )

    def _heads(self) -> list[bytes]:
        """Give all heads; the newest lies there twice, and both should be the same."""
        newest = self._store.file(CHECKPOINT_FILE)
        return list(dict.fromkeys([*self._keeper.heads(), *([newest] if newest is not None else [])]))

    def _look_at_names(self, heads: list[bytes], tree_root: bytes) -> None:
        """Find small files about the log that are not what they should be."""
        if not tree_root:
            self._note(Kind.TILE, "what the tiles were made for cannot be read", SIZE_FILE)
        try:
            named = self._keeper.keys()
        except CheckpointError as fault:
            self._note(Kind.HEAD, fault.message, VKEYS_FILE)
            return
        name = self._keeper.known_origin()
        if any(key.name != name for key in named):
            self._note(Kind.HEAD, f"the log is called {ascii(name)[:80]}, and its keys are not", ORIGIN_FILE)
        if heads and not named:
            self._note(Kind.HEAD, "heads were signed, and no key is named", VKEYS_FILE)

    def _note(self, kind: Kind, problem: str, place: str) -> None:
        self._unreadable.append(Fault(kind, problem, place))

    def _trail_heads(self) -> Iterator[TrailHead]:
        for session_id in self._guarded(self._store.sessions()):
            try:
                yield self._store.trail_head(session_id)
            except CheckpointCorruptError as fault:
                self._remember(fault, session_id)

    def _guarded(self, items: Iterable[T]) -> Iterator[T]:
        """Give items until they cannot be read any further."""
        try:
            yield from items
        except CheckpointCorruptError as fault:
            self._remember(fault)

    def _remember(self, fault: CheckpointError, session_id: str = "") -> None:
        self._unreadable.append(Fault(Kind.ENTRY, fault.message, fault.place, None, session_id))

    def _hear(self, fields: Mapping[str, Any], index: int, is_gone: bool) -> None:
        self._heard[fields["session"]] = fields["seq"]
        self._missing.hear(fields)
        self._gone.hear(fields, index, is_gone)

    def _found(self) -> Iterator[Fault]:
        """Tell what the trail has and the store has not; the store is asked last, it may only have more."""
        if any(self._gone.faults()):
            self._hear_more()
        yield from self._gone.faults()
        yield from self._missing.faults(self._store)
        yield from self._unreadable

    def _hear_more(self) -> None:
        """Hear what was told since: an erasure of this moment takes payloads of entries read long before."""
        for session_id in self._guarded(self._store.sessions()):
            for line in self._guarded(self._store.trail(session_id, after=self._heard.get(session_id, 0))):
                with suppress(CheckpointCorruptError):
                    self._hear(read_fields(line), 0, False)

    def _read_tile(self, tile: Tile) -> bytes | None:
        try:
            return self._keeper.tiles.read(tile)
        except CheckpointCorruptError:
            return _UNREADABLE

    def _read_payload(self, session_id: str, seq: int) -> bytes | None:
        try:
            return self._store.payload(session_id, seq)
        except CheckpointCorruptError:
            return _UNREADABLE

    def _counted(self, lines: Iterable[bytes], total: int) -> Iterator[bytes]:
        for number, line in enumerate(lines, 1):
            if not number % _PROGRESS_STEP:
                self._on_progress(min(number, total), total)
            yield line
        self._on_progress(total, total)
