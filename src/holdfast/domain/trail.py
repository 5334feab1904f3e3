"""Audit entries: who did what, when and with what outcome, each line chained to the one before.

One line, exactly as stored, its newline included, is one leaf of the store's Merkle tree:

    {"id":"AE-000002","seq":2,"ts":"…","type":"AGENT_DECISION","session":"s-1","workflow":"WF-1",
     "agent":"planner","actor":"…","outcome":"success","correlation":"…","prev_hash":"sha256:…",
     "hash":"sha256:…","data":{"cp_seq":1,"payload":"sha256:…"}}

`hash` is the SHA-256 of the line with the value of `hash` empty; `prev_hash` is inside, so that it chains.
`seq` counts the entries of a session without a gap. Fields without a value are left out.

What must be erasable cannot lie in a line that must never change. So the line holds two kinds of data only:
*facts*, which are references (sequences, counts, hashes, names of things) and never a person's data, and a
*commitment* to the payload. The payload itself (rationale, alternatives, texts) is a line of its own that is
stored beside and can be removed physically; every proof stays valid without it. See `payload`.

Names of sessions, workflows, agents and actors stay in the line. Where they could be those of people, give
random ids, and keep the mapping where it can be erased.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from holdfast.domain import plainjson
from holdfast.domain.audit_entry import AuditEntry, AuditRecord, TrailHead
from holdfast.domain.audit_type import AuditType
from holdfast.domain.entry_rules import (
    FACTS_MAX,
    NUMBER_MAX,
    OUTCOMES,
    OWN_FACTS,
    facts_problem,
    is_hash,
    is_short,
    is_type,
    names_text,
    no_short_text,
    start_problem,
    time_problem,
)
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointError,
    ChecksumMismatchError,
    InvalidStateError,
    UnstorableValueError,
)
from holdfast.domain.ids import GENESIS
from holdfast.domain.payload import commitment
from holdfast.domain.release import PRODUCER_FACT, __version__
from holdfast.domain.tiles import ENTRY_BYTES_MAX
from holdfast.domain.time import timestamp_text
from holdfast.domain.usual_line import read_usual

#: An entry may have been made so long before the one that it follows.
CLOCK_SLACK = timedelta(seconds=1)

_CLAIM = re.compile(rb'\{"id":"(?P<id>[ !#-\[\]-~]{1,255})","seq":(?P<seq>[0-9]{1,18}),')
#: Nowhere inside a text: there a quote has a backslash before it.
_SESSION = re.compile(rb'"session":("(?:[^"\\]|\\.)*")')
_HASH_START = b',"hash":"'
_PAYLOAD = "payload"
_quoted = plainjson.quoted
_HINT = "Run `holdfast audit verify` to see how far the trail can be trusted."


def encode_entry(entry: AuditEntry, head: TrailHead) -> AuditRecord:
    """Write an entry as the line that follows a session's last one.

    Raises:
        InvalidStateError: if it cannot follow: another session's, the first is no SESSION_STARTED, or the
            session was closed and is not started again.
        UnstorableValueError: if its facts are not plain references, or the line would be too long.
    """
    if entry.facts:
        _check_facts(entry.facts)
    said = timestamp_text(entry.timestamp)
    written = max(said, head.timestamp)
    # A time that was just written is right; one that was taken from the head may be anything.
    clock = said if said != written and _is_step(said, written) else ""
    problem, names = _names_of(entry)
    problem = problem or _entry_problem(entry, head)
    problem = problem or (time_problem(written, clock) if said != written else "")
    if problem:
        raise InvalidStateError(f"an audit entry cannot be written: {problem}", place=entry.session_id)
    seq = head.seq + 1
    entry_id = entry.id or f"AE-{seq:06d}"
    before = f'{{"id":{_quoted(entry_id)},"seq":{seq},"ts":"{written}"'
    if clock:
        before += f',"clock":"{clock}"'
    text = f'{before}{names},"prev_hash":"{head.hash}","hash":""{_data_text(entry, head)}}}\n'
    hashed = plainjson.encoded(text)
    digest = "sha256:" + hashlib.sha256(hashed).hexdigest()
    start = hashed.find(_HASH_START) + len(_HASH_START)
    line = hashed[:start] + digest.encode() + hashed[start:]
    if len(line) > ENTRY_BYTES_MAX:
        raise _too_long(len(line), head.session_id)
    after = TrailHead(head.session_id, seq, digest, written, entry.type == AuditType.SESSION_CLOSED)
    return AuditRecord(entry_id, after, line, entry.stored, str(entry.type), entry.workflow_id)


def chain(entries: Sequence[AuditEntry], head_of: Callable[[str], TrailHead]) -> list[AuditRecord]:
    """Write entries of one commit as the lines that follow in their sessions.

    A session begins by itself: one that has no entry, or was closed, first gets a SESSION_STARTED. So nobody
    has to know where a trail stands before the moment it is committed.

    Args:
        entries: what is to be told, in order.
        head_of: tells where the trail of a session stands before.

    Raises:
        InvalidStateError, UnstorableValueError: as `encode_entry`.
    """
    heads: dict[str, TrailHead] = {}
    records: list[AuditRecord] = []
    for entry in entries:
        session_id = entry.session_id
        head = heads.get(session_id) or head_of(session_id)
        if (head.seq == 0 or head.closed) and entry.type != AuditType.SESSION_STARTED:
            records.append(encode_entry(_start(entry), head))
            head = records[-1].head
        records.append(encode_entry(entry, head))
        heads[session_id] = records[-1].head
    return records


def _start(entry: AuditEntry) -> AuditEntry:
    """Make what begins the session of an entry."""
    return AuditEntry(
        entry.timestamp,
        AuditType.SESSION_STARTED,
        entry.session_id,
        agent=entry.agent,
        actor=entry.actor,
        # Once for all that the session tells of: an entry of its own for each would be paid with each commit.
        facts={PRODUCER_FACT: __version__},
    )


def decode_entry(line: bytes, head: TrailHead | None) -> AuditEntry:
    """Read an entry's line after checking it.

    Args:
        line: the bytes as stored, newline included.
        head: where the session's trail stood before. None where the entry before is not at hand: then only
            the line itself is checked.

    Raises:
        ChecksumMismatchError: if the line is not the one that was committed there.
        CheckpointCorruptError: if its hash is right and it still is no entry that can follow.
    """
    fields = read_fields(line)
    if head is not None:
        check_follows(fields, head)
    data = dict(fields.get("data", {}))
    clock = fields.get("clock")
    return AuditEntry(
        id=fields["id"],
        timestamp=datetime.fromisoformat(fields["ts"]),
        type=fields["type"],
        session_id=fields["session"],
        workflow_id=fields.get("workflow"),
        agent=fields.get("agent"),
        actor=fields.get("actor"),
        outcome=fields["outcome"],
        correlation_id=fields.get("correlation"),
        payload=data.pop(_PAYLOAD, ""),
        facts=data,
        seq=fields["seq"],
        clock=None if clock is None else datetime.fromisoformat(clock),
        prev_hash=fields["prev_hash"],
        hash=fields["hash"],
    )


def read_fields(line: bytes) -> dict[str, Any]:
    """Check a line by itself, as `decode_entry` does; answer its fields as they stand in it."""
    start = line.find(_HASH_START) + len(_HASH_START)
    end = line.find(b'"', start)
    digest = hashlib.sha256(line[:start])
    digest.update(line[end:])
    if line[start:end] != b"sha256:" + digest.hexdigest().encode():
        raise ChecksumMismatchError(
            "an audit entry is not the one that was committed", place=place_of(line), hint=_HINT
        )
    usual = read_usual(line)
    return _read_exactly(line, line[start:end].decode()) if usual is None else usual


def _read_exactly(line: bytes, checked_hash: str) -> dict[str, Any]:
    """Read a line field by field; the hash that was checked must be the one that readers see."""
    try:
        # A key that stands twice would let two readers see two entries in one line.
        fields = plainjson.loads(line, strict=True)
    except CheckpointError:
        raise _no_entry(line, "it is not JSON") from None
    if type(fields) is not dict or line.find(b"\n") != len(line) - 1:
        raise _no_entry(line, "it is not one object on one line")
    if fields.get("hash") != checked_hash:
        raise _no_entry(line, "the hash that was checked is not the one that readers see")
    problem = _shape_problem(fields) or time_problem(fields.get("ts"), fields.get("clock", ""))
    problem = problem or _data_problem(fields)
    problem = problem or facts_problem(fields.get("data", {}), FACTS_MAX + OWN_FACTS)
    if problem:
        raise _no_entry(line, problem)
    return fields


def check_follows(fields: Mapping[str, Any], head: TrailHead) -> None:
    """Check that the entry with these fields is what comes next in a trail.

    Raises:
        CheckpointCorruptError: if it is not.
    """
    problem = _link_problem(fields, head)
    if problem:
        place = f"audit entry {fields['seq']} of session {ascii(fields['session'])[:80]}"
        raise CheckpointCorruptError(
            f"an audit entry is not what follows: {problem}", place=place, hint=_HINT
        )


def head_after(fields: Mapping[str, Any]) -> TrailHead:
    """Tell where a trail stands after the entry with these fields."""
    closed = fields["type"] == AuditType.SESSION_CLOSED
    return TrailHead(fields["session"], fields["seq"], fields["hash"], fields["ts"], closed)


def place_of(line: bytes) -> str:
    """Name an entry by what its first bytes claim; nothing else of a bad line is trusted."""
    claim = _CLAIM.match(line)
    if not claim:
        return "an audit line without id and sequence"
    session = session_of(line)
    told = f" of session {ascii(session)[:80]}" if session else ""
    return f"audit entry {claim['seq'].decode()} ({claim['id'].decode()}){told}"


def claimed_id(line: bytes) -> str:
    """Give the id that a line claims, also a bad one; empty if its first bytes claim none."""
    claim = _CLAIM.match(line)
    return claim["id"].decode() if claim else ""


def session_of(line: bytes) -> str:
    """Give the session that a line says it belongs to, without checking it; empty if it says none."""
    found = _SESSION.search(line)
    if found is None:
        return ""
    try:
        return str(plainjson.loads(found[1]))
    except CheckpointError:
        return ""


def _is_step(said: str, written: str) -> bool:
    """Tell whether a clock stepped back; threads that wait for their turn come a little late, that is all."""
    return datetime.fromisoformat(written) - datetime.fromisoformat(said) > CLOCK_SLACK


def _names_of(entry: AuditEntry) -> tuple[str, str]:
    told = (
        entry.type,
        entry.session_id,
        entry.workflow_id,
        entry.agent,
        entry.actor,
        entry.outcome,
        entry.correlation_id,
    )
    try:
        return names_text(*told)
    except TypeError:
        # What has no hash is no text, and nothing to remember.
        return names_text.__wrapped__(*told)


def _data_text(entry: AuditEntry, head: TrailHead) -> str:
    """Write facts as JSON: texts, numbers, `True` and `False`; names that were checked need no quoting."""
    data = entry.facts
    if entry.stored or entry.payload or entry.type == AuditType.SESSION_CLOSED:
        data = _data(entry, head)
    if not data:
        return ""
    told = [
        f'"{name}":{_quoted(fact) if type(fact) is str else str(fact).lower()}' for name, fact in data.items()
    ]
    return f',"data":{{{",".join(told)}}}'


def _data(entry: AuditEntry, head: TrailHead) -> dict[str, Any]:
    """Join facts and commitment; the entry that closes a session says where the trail ends."""
    data: dict[str, Any] = dict(entry.facts)
    if entry.type == AuditType.SESSION_CLOSED:
        data |= {"last_seq": head.seq + 1, "head": head.hash}
    if entry.stored:
        data[_PAYLOAD] = commitment(entry.stored)
    elif entry.payload:
        data[_PAYLOAD] = entry.payload
    return data


def _too_long(line_bytes: int, session_id: str) -> UnstorableValueError:
    return UnstorableValueError(
        f"an audit entry would have {line_bytes} bytes, more than {ENTRY_BYTES_MAX}",
        place=session_id,
        hint="Put what is long into the payload.",
    )


def _check_facts(facts: Mapping[str, int | str]) -> None:
    problem = "'payload' is the name of the commitment" if _PAYLOAD in facts else facts_problem(facts)
    if problem:
        raise UnstorableValueError(
            f"the facts of an audit entry are no plain references: {problem}",
            hint="Facts are short texts and whole numbers by name; all else goes into the payload.",
        )


def _entry_problem(entry: AuditEntry, head: TrailHead) -> str:
    """Say what keeps an entry from being written after another; empty if nothing does."""
    if entry.id and not is_short(entry.id):
        return no_short_text("id")
    if not 0 <= head.seq < NUMBER_MAX:
        return "'seq' does not count from one"
    if head.hash != GENESIS and not is_hash(head.hash):
        return "'prev_hash' is no hash"
    if entry.payload and not entry.stored and not is_hash(entry.payload):
        return "'payload' is no commitment"
    if entry.session_id != head.session_id:
        return f"it belongs to the session {entry.session_id!r}"
    return start_problem(entry.type, head) if head.seq == 0 or head.closed else ""


def _shape_problem(fields: dict[str, Any]) -> str:
    """Say what keeps names and numbers from being those of an entry; empty if nothing does."""
    get = fields.get
    for name in ("id", "session", "workflow", "agent", "actor", "correlation"):
        if not is_short(get(name, "-")):
            return no_short_text(name)
    if "id" not in fields or "session" not in fields:
        return "it has no id or no session"
    if type(get("seq")) is not int or not 0 < fields["seq"] <= NUMBER_MAX:
        return "'seq' does not count from one"
    if type(get("type")) is not str or not is_type(fields["type"]):
        return "'type' is not in capital letters"
    if type(get("outcome")) is not str or fields["outcome"] not in OUTCOMES:
        return "'outcome' is none that is known"
    return ""


def _data_problem(fields: dict[str, Any]) -> str:
    previous = fields.get("prev_hash")
    if previous != GENESIS and not is_hash(previous):
        return "'prev_hash' is no hash"
    data = fields.get("data", {})
    if type(data) is not dict:
        return "'data' is no object"
    if _PAYLOAD in data and not is_hash(data[_PAYLOAD]):
        return "'payload' is no commitment"
    if fields["type"] == AuditType.SESSION_CLOSED:
        is_right = data.get("last_seq") == fields["seq"] and data.get("head") == previous
        if not is_right:
            return "it does not say where the session ends"
    return ""


def _link_problem(fields: Mapping[str, Any], head: TrailHead) -> str:
    """Say what keeps an entry from following; empty if nothing does."""
    if fields["session"] != head.session_id:
        return f"it belongs to the session {fields['session']!r}"
    if fields["seq"] != head.seq + 1:
        return f"entry {head.seq + 1} should stand here, not entry {fields['seq']}"
    if fields["prev_hash"] != head.hash:
        return "it does not follow the entry before"
    if fields["ts"] < head.timestamp:
        return f"it was made before the entry before, which is of {head.timestamp}"
    if "clock" in fields and fields["ts"] != head.timestamp:
        return "'clock' says that the time was taken from the entry before, and it was not"
    return start_problem(fields["type"], head)


def _no_entry(line: bytes, why: str) -> CheckpointCorruptError:
    return CheckpointCorruptError(f"a line is no audit entry here: {why}", place=place_of(line), hint=_HINT)
