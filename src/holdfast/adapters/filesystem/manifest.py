"""The manifest: one line per checkpoint, keyframe and status change. A view, rebuilt from the records."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter
from typing import Any

from holdfast.domain import plainjson
from holdfast.domain.json_reading import read_object
from holdfast.domain.plainjson import quoted
from holdfast.domain.record import Entry, KeyframeEntry, Removal, Transition
from holdfast.domain.value import value

_SUM_BYTES = 16

#: Manifest key -> Entry field, in the order they are written, which is that of the fields too.
_FIELDS = {
    "seq": "sequence",
    "id": "uuid",
    "ts": "timestamp",
    "type": "type",
    "checksum": "checksum",
    "parent": "parent",
    "group": "group",
    "len": "length",
    "size": "state_bytes",
    "status": "status",
    "stage": "stage",
    "agent": "agent",
    "session": "session",
    "phase": "phase",
    "label": "label",
    "blobs": "blobs",
    "event_seq": "event_seq",
    "schema": "schema",
    "retry_count": "retry_count",
    "pinned": "pinned",
    "pruned": "pruned",
}
#: What a checkpoint's line leaves out, all of it or nothing, where the line right before it says the same.
_REPEATED = ("type", "group", "stage", "agent", "session", "phase", "label", "schema")
_repeated_of = attrgetter(*(_FIELDS[key] for key in _REPEATED))
_NOTHING = Entry(0, "", "", "", "")
_USUAL = {key: getattr(_NOTHING, name) for key, name in _FIELDS.items()}
_fields_of = itemgetter(*_FIELDS)
#: Key, field and usual value of what a line tells where it is not usual; the type always, where it is told.
_WHOLE = [(k, n, None if k == "type" else _USUAL[k]) for k, n in _FIELDS.items() if k != "parent"]
_NEW = [word for word in _WHOLE if word[0] not in (*_REPEATED, "event_seq")]
#: Words of a line that repeats the one before it: what nearly every line tells, and what nearly none does.
_COMMON = ("seq", "id", "ts", "checksum", "len", "size")
_common_of = attrgetter(*(_FIELDS[key] for key in _COMMON))
_rare_of = attrgetter(*(name for key, name, _ in _NEW if key not in _COMMON))
_NOTHING_RARE = _rare_of(_NOTHING)


class ManifestDamaged(Exception):
    """A line is not what was written; the manifest has to be rebuilt."""


@value
class Listed:
    """A checkpoint as a line told it, where its record ends, and where the manifest ended with that line."""

    entry: Entry
    record_end: int
    manifest_end: int = 0
    line: bytes = b""
    #: What the line right before it told, where it may leave out what that says.
    before: Entry | None = None

    @property
    def offset(self) -> int:
        """Where its record begins."""
        return self.record_end - self.entry.length


@dataclass(slots=True)
class Manifest:
    """What the lines of a manifest add up to."""

    workflow_id: str = ""
    entries: dict[int, Entry] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)
    keyframes: dict[int, KeyframeEntry] = field(default_factory=dict)
    #: Sequence of the checkpoint that the last line told; 0 if that was another line.
    told_last: int = field(default=0, compare=False)

    @property
    def last(self) -> Entry | None:
        return self.entries[next(reversed(self.entries))] if self.entries else None

    def take(self, entry: Entry, offset: int) -> None:
        """List a checkpoint, as the last line tells it."""
        self.entries[entry.sequence] = entry
        self.offsets[entry.sequence] = offset
        self.told_last = entry.sequence

    def copy(self) -> Manifest:
        copied = Manifest(self.workflow_id, dict(self.entries), dict(self.offsets), dict(self.keyframes))
        copied.told_last = self.told_last
        return copied

    def remove(self, sequences: Iterable[int], groups: Iterable[int]) -> None:
        """Turn entries into tombstones and forget the keyframes of groups that went."""
        for sequence in sequences:
            if (entry := self.entries.get(sequence)) is not None:
                self.entries[sequence] = tombstone(entry)
        gone = set(groups)
        for group in gone:
            self.keyframes.pop(group, None)
        for sequence, entry in self.entries.items() if gone else ():
            if entry.blobs and entry.group in gone:
                self.entries[sequence] = replace(entry, blobs=())

    def lines(self) -> bytes:
        """The manifest written anew."""
        # Its first line tells it from the one before: a reader must not take it for more of the same.
        pieces = [header_line(self.workflow_id, rewrite=uuid.uuid4().hex[:16])]
        pieces += [keyframe_line(keyframe) for keyframe in self.keyframes.values()]
        before = None
        for sequence, entry in self.entries.items():
            offset = self.offsets.get(sequence, 0)
            pieces.append(entry_line(entry, offset, before))
            before = Listed(entry, offset + entry.length)
        return b"".join(pieces)


def header_line(workflow_id: str, *, rewrite: str = "") -> bytes:
    """The first line; `rewrite` names this writing of a manifest that replaces another."""
    fields: dict[str, Any] = {"manifest": 1, "wf": workflow_id}
    return summed_line({**fields, "rewrite": rewrite} if rewrite else fields)


def entry_line(entry: Entry, offset: int, before: Listed | None = None) -> bytes:
    """A checkpoint's line; `before` is what the line right before it tells, if that is known.

    A line without a type says what the line before it says, see `_repeat`.
    """
    if before is None or not _repeats(entry, offset, before):
        return summed_line({**_told(entry, _WHOLE), "at": offset})
    follows = entry.event_seq == before.entry.event_seq + 1
    if follows and entry.parent == before.entry.sequence and _rare_of(entry) == _NOTHING_RARE:
        common = _common_of(entry)
        if all(common):
            return _usual_line(*common)
    fields = _told(entry, _NEW)
    if not follows:
        fields["event_seq"] = entry.event_seq
    return summed_line(fields)


def _told(entry: Entry, words: list[tuple[str, str, Any]]) -> dict[str, Any]:
    fields = {key: told for key, name, usual in words if (told := getattr(entry, name)) != usual}
    # The parent is nearly always the checkpoint before; only another one is worth a word.
    if entry.parent != entry.sequence - 1:
        fields["parent"] = entry.parent
    return fields


def _usual_line(sequence: int, uuid: str, ts: str, checksum: str, length: int, state_bytes: int) -> bytes:
    """Write what the line of nearly every checkpoint tells: no encoder has to look for what it may be."""
    told = f'{{"seq":{sequence},"id":{quoted(uuid)},"ts":{quoted(ts)},"checksum":{quoted(checksum)},'
    return _summed(plainjson.encoded(f'{told}"len":{length},"size":{state_bytes}'))


def _repeats(entry: Entry, offset: int, before: Listed) -> bool:
    follows = entry.sequence == before.entry.sequence + 1 and offset == before.record_end
    return follows and _repeated_of(entry) == _repeated_of(before.entry)


def _repeat(line: dict[str, Any], before: Entry, offset: int) -> dict[str, Any]:
    """What a line says that leaves out what the one before it told, of a record that lies at `offset`."""
    if line["seq"] != before.sequence + 1:
        raise KeyError("type")
    said = dict(zip(_REPEATED, _repeated_of(before), strict=True))
    return {"event_seq": before.event_seq + 1, **line, **said, "at": offset + before.length}


def keyframe_line(keyframe: KeyframeEntry) -> bytes:
    fields: dict[str, Any] = {
        "keyframe": keyframe.sequence,
        "sha256": keyframe.sha256,
        "len": keyframe.length,
    }
    fields["suffix"] = keyframe.suffix
    if keyframe.blobs:
        fields["blobs"] = keyframe.blobs
    return summed_line(fields)


def transition_line(transition: Transition) -> bytes:
    return summed_line(
        {
            "of": transition.sequence,
            "status": transition.status,
            "retry_count": transition.retry_count,
            "pinned": transition.pinned,
        }
    )


def removal_line(removal: Removal) -> bytes:
    return summed_line({"pruned": _ranges(removal.sequences), "groups": removal.groups})


def _ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Runs of neighbours as first and last."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


def tombstone(entry: Entry) -> Entry:
    """What stays of a removed checkpoint: enough to check the chain and to say when it was.

    Its blobs too: while its group is there, checkpoints after it are changes on top of it.
    """
    return Entry(
        entry.sequence,
        entry.uuid,
        entry.timestamp,
        entry.type,
        entry.checksum,
        entry.parent,
        group=entry.group,
        length=entry.length,
        state_bytes=entry.state_bytes,
        phase=entry.phase,
        blobs=entry.blobs,
        event_seq=entry.event_seq,
        schema=entry.schema,
        pruned=True,
    )


def parse(
    data: bytes, before: Manifest | None = None, written: dict[bytes, Listed] | None = None
) -> Manifest:
    """Add up a manifest's lines, or those that follow `before`.

    What a line tells that is among those `written` is known; it is read once, and taken out there.

    Raises ManifestDamaged at the first wrong one.
    """
    manifest = before.copy() if before else Manifest()
    if data and not data.endswith(b"\n"):
        raise ManifestDamaged("the last line is cut")
    try:
        for line in data.splitlines(keepends=True):
            listed = written.pop(line, None) if written else None
            if listed is not None and _is_in_place(listed, manifest):
                manifest.take(listed.entry, listed.offset)
            else:
                fold(manifest, parse_line(line))
    except (AttributeError, KeyError, TypeError, ValueError) as fault:
        # Its sum is right, so somebody wrote it this way.
        raise ManifestDamaged(f"a line does not say what a manifest says ({fault!r})") from fault
    if data and not manifest.workflow_id:
        raise ManifestDamaged("the first line does not name the workflow")
    return manifest


def _is_in_place(listed: Listed, manifest: Manifest) -> bool:
    """Tell whether the line before it says what it said when it was written: it may leave that out."""
    if listed.before is None:
        return True
    before, offset = manifest.entries.get(manifest.told_last), manifest.offsets.get(manifest.told_last, 0)
    return before == listed.before and offset + listed.before.length == listed.offset


def fold(manifest: Manifest, line: dict[str, Any]) -> None:
    """Add what a line tells."""
    told_last, manifest.told_last = manifest.told_last, 0
    if "seq" in line:
        if line["seq"] < 1:
            raise ValueError("checkpoints are counted from 1")
        if "type" not in line:
            line = _repeat(line, manifest.entries[told_last], manifest.offsets[told_last])
        entry = read_entry(line)
        if _is_beyond(entry, line["at"], manifest):
            raise ValueError("records lie between that no line tells of")
        manifest.take(entry, line["at"])
    elif "keyframe" in line:
        manifest.keyframes[line["keyframe"]] = read_keyframe(line)
    elif "of" in line:
        apply_transition(manifest.entries, line)
    elif "groups" in line:
        # However long a run claims to be, only what is listed can go.
        newest = manifest.last.sequence if manifest.last else 0
        gone = [range(max(first, 1), min(last, newest) + 1) for first, last in line["pruned"]]
        manifest.remove((sequence for run in gone for sequence in run), line["groups"])
    else:
        manifest.workflow_id = line["wf"]


def _is_beyond(entry: Entry, offset: int, manifest: Manifest) -> bool:
    """Tell whether a record lies between one and the last that is listed, in the same group or at its end."""
    last = manifest.last
    if last is None or entry.sequence <= last.sequence + 1:
        return False
    if entry.group == last.group:
        return offset > manifest.offsets[last.sequence] + last.length
    return entry.group == last.sequence + 1


def apply_transition(entries: dict[int, Entry], line: dict[str, Any]) -> None:
    if (entry := entries.get(line["of"])) is not None:
        entries[entry.sequence] = replace(
            entry, status=line["status"], retry_count=line["retry_count"], pinned=line["pinned"]
        )


def parse_line(line: bytes) -> dict[str, Any]:
    """One line's fields if its sum is right."""
    body, separator, tail = line.rpartition(b',"sum":"')
    if not separator or tail != _sum(body) + b'"}\n':
        raise ManifestDamaged(f"wrong line: {line[:80]!r}")
    try:
        return read_object(body.decode() + "}")
    except ValueError:
        raise ManifestDamaged(f"no object: {line[:80]!r}") from None


def read_entry(line: dict[str, Any]) -> Entry:
    """What a checkpoint's line tells; what it leaves out is usual, but for the type."""
    usual = {**_USUAL, "parent": line["seq"] - 1, "type": line["type"], **line}
    usual["blobs"] = tuple(usual["blobs"])
    return Entry(*_fields_of(usual))


def read_keyframe(line: dict[str, Any]) -> KeyframeEntry:
    return KeyframeEntry(
        line["keyframe"], line["sha256"], line["len"], line["suffix"], tuple(line.get("blobs", ()))
    )


def summed_line(fields: dict[str, Any]) -> bytes:
    """Write a line that carries its own sum, which `parse_line` looks at."""
    return _summed(plainjson.dumps(fields)[:-1])


def _summed(body: bytes) -> bytes:
    return b'%b,"sum":"%b"}\n' % (body, _sum(body))


def _sum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:_SUM_BYTES].encode()
