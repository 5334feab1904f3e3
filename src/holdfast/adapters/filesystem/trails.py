"""Reading the trail: sessions, their entries and payloads, and the order of the leaves."""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from holdfast.adapters.filesystem import layout, order
from holdfast.adapters.filesystem.manifest import ManifestDamaged, parse_line, summed_line
from holdfast.adapters.filesystem.order import RECORD_BYTES, Place
from holdfast.adapters.filesystem.overlay import Files
from holdfast.adapters.filesystem.payload_slots import Slot, slots
from holdfast.domain.audit_entry import TrailHead
from holdfast.domain.errors import CheckpointCorruptError, CheckpointError
from holdfast.domain.tiles import ENTRY_BYTES_MAX
from holdfast.domain.trail import head_after, read_fields
from holdfast.domain.value import value

T = TypeVar("T")

#: Leaves whose lines are read together, so that each session's trail is opened once for all of them.
_LEAVES_AT_ONCE = 8192
_LEAF_BYTES_AT_ONCE = 16 * 1024 * 1024
_WINDOW_BYTES = 1024 * 1024
_SEARCHED_RECORDS = 20_000
_REMEMBERED = 8192
_READ_AGAIN_MAX = 20
#: More than any line of the list of sessions has.
_SESSION_LINE_BYTES = 4096

#: A session that is not in the list of sessions.
UNLISTED = -1


@value
class Session:
    """Where a session stands on this disk: its trail, and its line in the list of sessions."""

    head: TrailHead
    listed_at: int = UNLISTED


class Remembered(OrderedDict[str | int, T]):
    """The last few things that were asked for."""

    def set(self, key: str | int, known: T) -> None:
        self[key] = known
        if len(self) > _REMEMBERED:
            self.popitem(last=False)


class Trails:
    """What the files of the trail say, with what is pending laid over them."""

    def __init__(self, files: Files, refresh: Callable[[], bool]) -> None:
        self._files = files
        self.refresh = refresh
        self._sessions: Remembered[Session] = Remembered()
        self._names: Remembered[str] = Remembered()
        self._listed: Remembered[int] = Remembered()
        #: The leaf that was found last of each session: the next one asked for is mostly near it.
        self._leaf: Remembered[tuple[int, int]] = Remembered()
        #: Likewise, the slot of a payload.
        self._slot: Remembered[tuple[int, int]] = Remembered()

    def forget(self) -> None:
        """Forget where things were: what was not durable may have been taken back."""
        for remembered in (self._sessions, self._names, self._listed, self._leaf, self._slot):
            remembered.clear()

    def _steady(self, read: Callable[[], T]) -> T:
        """Read, and again if somebody wrote meanwhile: what looks damaged may be half a line so far."""
        for _ in range(_READ_AGAIN_MAX):
            try:
                return read()
            except CheckpointCorruptError:
                if not self.refresh():
                    break
        return read()

    # -- sessions ----------------------------------------------------------------------------

    def known(self, session_id: str) -> Session:
        """Where a session stands, from memory if we can. For those who `follow` every commit."""
        session = self._sessions.get(layout.session_folder(session_id))
        if session is None:
            session = self.session(session_id)
            self.remember({session_id: session})
        return session

    def remember(self, sessions: Mapping[str, Session]) -> None:
        """Keep in memory where sessions stand."""
        for session_id, session in sessions.items():
            self._sessions.set(layout.session_folder(session_id), session)

    def follow(self, folder: str) -> None:
        """Forget the session whose folder it is: somebody else wrote there."""
        self._sessions.pop(folder, None)

    def session(self, session_id: str) -> Session:
        """Where a session stands; nothing but its id where it has no trail."""
        return self._steady(lambda: self._session(session_id))

    def _session(self, session_id: str) -> Session:
        path = layout.trail_path(session_id)
        size = self._files.size(path)
        if not size:
            return Session(TrailHead(session_id))
        tail = self._files.read(path, max(size - ENTRY_BYTES_MAX - 1, 0)) or b""
        try:
            head = head_after(read_fields(tail[tail.rfind(b"\n", 0, -1) + 1 :]))
        except CheckpointError as error:
            raise _damaged("the last audit entry of the session is damaged", path) from error
        if head.session_id != session_id:
            raise _damaged(f"the trail is that of the session {ascii(head.session_id)[:80]}", path)
        return Session(head, self._listed_at(session_id))

    def sessions(self) -> Iterator[str]:
        """Ids of all sessions as they are listed, or where that is damaged, as their trails tell."""
        seen: set[str] = set()
        is_whole = True
        for line in self._lines(layout.SESSIONS):
            name = _name_in(line)
            is_whole = is_whole and name is not None
            if name is not None and name not in seen:
                seen.add(name)
                yield name
        if not is_whole:
            yield from (name for name in self._told_by_trails() if name not in seen)

    def paths(self) -> Iterator[str]:
        """Where trails lie."""
        for shard in self._files.list_folders(layout.AUDIT):
            for folder in self._files.list_folders(f"{layout.AUDIT}/{shard}") if len(shard) == 2 else ():
                yield f"{layout.AUDIT}/{shard}/{folder}/{layout.TRAIL}"

    def _told_by_trails(self) -> Iterator[str]:
        for path in self.paths():
            try:
                name: str = read_fields(next(self._lines(path), b""))["session"]
            except CheckpointError:
                continue
            if layout.trail_path(name) == path:
                yield name

    def _listed_at(self, session_id: str) -> int:
        known = self._listed.get(session_id)
        if known is None:
            known = self._find(layout.SESSIONS, session_line(session_id))
            if known != UNLISTED:
                self._listed.set(session_id, known)
        return known

    def _find(self, path: str, line: bytes) -> int:
        for offset, data in self._windows(path):
            at = data.find(line)
            if at >= 0:
                return offset + at
        return UNLISTED

    def name_at(self, session_at: int) -> str:
        """Id of the session whose line in the list begins at an offset."""
        known = self._names.get(session_at)
        if known is None:
            data = self._files.read(layout.SESSIONS, session_at, _SESSION_LINE_BYTES) or b""
            known = _name_in(data[: data.find(b"\n") + 1])
            if known is None:
                raise _damaged(f"there is no session at {session_at}", layout.SESSIONS)
            self._names.set(session_at, known)
        return known

    # -- entries -----------------------------------------------------------------------------

    def entries(self, session_id: str, after: int) -> Iterator[bytes]:
        """Lines of a session's trail, the first `after` left out."""
        for number, line in enumerate(self._lines(layout.trail_path(session_id)), start=1):
            if number > after:
                yield line

    def _lines(self, path: str) -> Iterator[bytes]:
        for _, data in self._windows(path):
            yield from io.BytesIO(data)

    def _windows(self, path: str) -> Iterator[tuple[int, bytes]]:
        """Whole lines of a file that only grows, some at once; what was cut off comes last, as it is."""
        offset, end, tries = 0, self._files.size(path) or 0, 0
        while offset < end:
            data = self._files.read(path, offset, min(_WINDOW_BYTES, end - offset)) or b""
            whole = data[: data.rfind(b"\n") + 1]
            if not whole and tries < _READ_AGAIN_MAX and self.refresh():
                end, tries = self._files.size(path) or 0, tries + 1
                continue
            yield offset, whole or data
            offset += len(whole or data) or _WINDOW_BYTES

    def payload(self, session_id: str, seq: int) -> bytes | None:
        """A payload as stored; None if there is none, or it was erased."""
        slot = self.slot(session_id, seq)
        return None if slot is None else self.payload_in(session_id, slot)

    def payload_in(self, session_id: str, slot: Slot) -> bytes | None:
        """What a slot holds; None if it was erased."""
        if not slot.stored_bytes:
            return None
        # Looked at once more, together with the bytes: it may have been erased meanwhile.
        path = layout.payloads_path(session_id)
        data = self._files.read(path, slot.offset, slot.length) or b""
        is_there = data.startswith(b'{"seq":%d,"slot":%d,"len":' % (slot.seq, slot.length))
        return data[slot.start - slot.offset :] if is_there else None

    def slot(self, session_id: str, seq: int) -> Slot | None:
        """Where the payload of an entry lies, or lay until it was erased."""
        path = layout.payloads_path(session_id)
        for slot in self._slots_near(session_id, path, seq):
            if slot.seq >= seq:
                return slot if slot.seq == seq else None
            self._slot.set(session_id, (slot.seq, slot.offset))
        return None

    def _slots_near(self, session_id: str, path: str, seq: int) -> Iterator[Slot]:
        """Slots from the one found last on, if it is still there and not behind the one looked for."""
        known = self._slot.get(session_id)
        if known is not None and known[0] <= seq:
            following = slots(self._files, path, known[1])
            near = next(following, None)
            if near is not None and (near.seq, near.offset) == known:
                return chain((near,), following)
        return slots(self._files, path, 0)

    # -- leaves ------------------------------------------------------------------------------

    def size(self) -> int:
        """How many leaves the tree has."""
        return (self._files.size(layout.ORDER) or 0) // RECORD_BYTES

    def leaves(self, after: int) -> Iterator[bytes]:
        """Lines of all sessions as they stand in the tree, in memory that does not grow with it."""
        for portion in self.portions(after, self.size()):
            yield from self.lines_of(portion)

    def portions(self, first: int, last: int) -> Iterator[Sequence[Place]]:
        """Places of leaves, as many at once as are well read together."""
        for start in range(first, last, _LEAVES_AT_ONCE):
            portion: list[Place] = []
            held = 0
            for place in self._places(start, min(start + _LEAVES_AT_ONCE, last)):
                if held + place.length > _LEAF_BYTES_AT_ONCE:
                    yield portion
                    portion, held = [], 0
                portion.append(place)
                held += place.length
            yield portion

    def _places(self, first: int, last: int) -> list[Place]:
        return self._steady(lambda: self._read_places(first, last))

    def _read_places(self, first: int, last: int) -> list[Place]:
        offset, length = first * RECORD_BYTES, (last - first) * RECORD_BYTES
        data = self._files.read(layout.ORDER, offset, length) or b""
        places: list[Place] = []
        for at in range(0, length, RECORD_BYTES):
            place = order.decode(data[at : at + RECORD_BYTES])
            if place is None:
                raise _damaged(f"the line of leaf {first + len(places)} is damaged", layout.ORDER)
            places.append(place)
        return places

    def lines_of(self, places: Sequence[Place]) -> list[bytes]:
        """Lines at some places. Where a trail was cut off, they are as short as what is left."""
        spans: dict[int, tuple[int, int, int]] = {}
        for place in places:
            start, end, held = spans.get(place.session_at, (place.offset, place.offset, 0))
            whole = min(start, place.offset), max(end, place.offset + place.length)
            spans[place.session_at] = (*whole, held + place.length)
        parts = {at: (span[0], self._span(self.name_at(at), *span)) for at, span in spans.items()}
        lines = []
        for place in places:
            start, data = parts[place.session_at]
            lines.append(data[place.offset - start : place.offset - start + place.length])
        return lines

    def _span(self, session_id: str, start: int, end: int, held: int) -> bytes:
        path = layout.trail_path(session_id)
        if end - start > held:
            raise _damaged(f"leaves lie apart that follow each other: {start} to {end}", path)
        for _ in range(_READ_AGAIN_MAX):
            data = self._files.read(path, start, end - start) or b""
            if len(data) == end - start or not self.refresh():
                break
        return data

    def place(self, session_id: str, seq: int) -> int | None:
        """Index of an entry among the leaves."""
        session_at = self._listed_at(session_id)
        if session_at == UNLISTED or seq < 1:
            return None
        near, index = self._leaf.get(session_id) or (0, 0)
        is_ahead = near < 1 or near > seq
        behind = b"" if is_ahead else order.claim(session_at, near)
        found = self._search(order.claim(session_at, seq), 0 if is_ahead else index, behind)
        if found is not None:
            self._leaf.set(session_id, (seq, found))
        return found

    def _search(self, claim: bytes, start: int, behind: bytes) -> int | None:
        """Find a leaf from another on, or from the first where that other is not what it was."""
        size = self.size()
        for first in range(start, size, _SEARCHED_RECORDS):
            data = (
                self._files.read(layout.ORDER, first * RECORD_BYTES, _SEARCHED_RECORDS * RECORD_BYTES) or b""
            )
            if first == start and not data.startswith(behind):
                return self._search(claim, 0, b"")
            at = data.find(claim)
            while at >= 0 and at % RECORD_BYTES:
                at = data.find(claim, at + 1)
            if at >= 0:
                return first + at // RECORD_BYTES
        return self._search(claim, 0, b"") if 0 < size <= start else None


def session_line(session_id: str) -> bytes:
    """Write the line of a session in the list of sessions."""
    return summed_line({"session": session_id})


def _name_in(line: bytes) -> str | None:
    try:
        name = parse_line(line).get("session")
    except (ManifestDamaged, ValueError, AttributeError):
        return None
    return name if isinstance(name, str) else None


def _damaged(what: str, place: str) -> CheckpointCorruptError:
    return CheckpointCorruptError(
        what, place=place, hint="Run `holdfast audit verify` to see how far the trail can be trusted."
    )
