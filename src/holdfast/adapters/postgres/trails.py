"""Trails of sessions: where each stood when this process last knew, and how entries are chained on top.

What is remembered may be wrong, for other processes write to the same sessions. The statement of a commit
says what it believes, and gets in only if that is so. Whoever changes a trail holds the lock of its session
until the transaction has ended: the others find it taken and wait for their turn, and race for no row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter

import psycopg

from holdfast.adapters.postgres import arrays
from holdfast.adapters.postgres.batch import Unit
from holdfast.adapters.postgres.connection import Connection
from holdfast.adapters.postgres.database import PARAMETER
from holdfast.adapters.sql import rows
from holdfast.adapters.sql.database import Row, Transaction
from holdfast.adapters.sql.trail import AUDIT_NAMES, audit_row
from holdfast.domain import trail
from holdfast.domain.audit_entry import AuditEntry, AuditRecord, TrailHead
from holdfast.domain.errors import CheckpointError

#: Sessions that are remembered; one that is not costs another round trip if it has entries.
REMEMBERED_MAX = 4096

#: Columns that are written with an entry: its leaf comes later.
ENTRY_NAMES = AUDIT_NAMES[:-1]

#: The lock of a session as the two numbers that name it.
SESSION_LOCK = "'audit'::regclass::oid::int, hashtext(session_id)"

# Always in the same order, and before any row is locked: nobody waits for each other in a circle. A client
# that stops while it holds one loses its transaction, before the others lose their patience.
_LOCK = """
select pg_advisory_xact_lock(kind, name), set_config('idle_in_transaction_session_timeout', :idle, true)
from (
    select 'audit'::regclass::oid::int as kind, hashtext(session_id) as name
    from unnest(:sessions::text[]) as s(session_id)
    union
    select 'files'::regclass::oid::int, hashtext(file) from unnest(:files::text[]) as f(file)
    order by kind, name
) as locks
"""

_HEADS = """
select wanted.session_id, last.seq, last.hash, last.timestamp, last.type
from unnest(:sessions::text[]) as wanted(session_id)
cross join lateral (
    select seq, hash, timestamp, type from audit
    where audit.session_id = wanted.session_id order by seq desc limit 1
) as last
"""

# The same for one session and no files, as nearly all are: the server plans it in a fraction of the time.
_LOCK_ONE = f"""
select pg_advisory_xact_lock({SESSION_LOCK.replace("session_id", ":session_id")}),
    set_config('idle_in_transaction_session_timeout', :idle, true)
"""
_HEAD_OF_ONE = """
select session_id, seq, hash, timestamp, type from audit
where session_id = :session_id order by seq desc limit 1
"""

_APPEND = f"""
insert into audit ({", ".join(ENTRY_NAMES)})
select * from unnest(
    :session_id::text[], :seq::bigint[], :timestamp::text[], :type::text[], :workflow_id::text[],
    :hash::text[], :line::bytea[], :payload::bytea[]
)
"""

_PLACE = itemgetter(0)

_LANDED = "select hash from audit where session_id = :session_id and seq = :seq"


class Unchainable(Exception):
    """An entry of a unit is none that a trail can hold."""

    def __init__(self, unit: Unit, problem: CheckpointError) -> None:
        super().__init__(str(problem))
        self.unit = unit
        self.problem = problem


class Chained:
    """Entries as they are written, and where their trails stand before and after them."""

    __slots__ = ("after", "before", "records")

    def __init__(self) -> None:
        self.records: list[AuditRecord] = []
        self.before: dict[str, TrailHead] = {}
        self.after: dict[str, TrailHead] = {}

    def add(self, entries: Sequence[AuditEntry], head_of: Callable[[str], TrailHead]) -> None:
        """Chain the entries of one commit on top of what is there."""

        after = self.after

        def known(session_id: str) -> TrailHead:
            head = after.get(session_id)
            if head is None:
                head = self.before[session_id] = after[session_id] = head_of(session_id)
            return head

        for record in trail.chain(entries, known):
            self.records.append(record)
            after[record.head.session_id] = record.head

    def rows(self) -> list[Row]:
        """The values of `ENTRY_NAMES` for each entry."""
        return [audit_row(record)[:-1] for record in self.records]


class KnownHeads:
    """Remembers where trails stood; when these are too many, all are forgotten."""

    def __init__(self) -> None:
        # Without a lock: a fork would copy one that is held.
        self._heads: dict[str, TrailHead] = {}
        #: Sessions that others wrote to, when it was last seen.
        self._shared: set[str] = set()

    def get(self, session_id: str) -> TrailHead:
        """Answer where a trail stood; one that nobody knows is taken to be new."""
        return self._heads.get(session_id) or TrailHead(session_id)

    def keep(self, heads: Iterable[TrailHead]) -> None:
        if len(self._heads) >= REMEMBERED_MAX:
            self._heads = {}
            self._shared = set()
        for head in heads:
            self._heads[head.session_id] = head

    def compare(self, heads: Mapping[str, TrailHead]) -> None:
        """Note of trails that are locked whether others wrote to them since they were last known."""
        for name, head in heads.items():
            if head == self._heads.get(name):
                self._shared.discard(name)
            else:
                self._shared.add(name)

    def are_shared(self, units: Sequence[Unit]) -> bool:
        """Whether others write to a session of these: who guesses where it stands, guesses wrong."""
        if not self._shared:
            return False
        entries = (entry for unit in units for commit in unit.commits for entry in commit.audit)
        return any(entry.session_id in self._shared for entry in entries)


def chain_units(units: Sequence[Unit], head_of: Callable[[str], TrailHead]) -> Chained:
    """Chain the entries of commits, in the order in which they stand in the call.

    Raises:
        Unchainable: one of them cannot be written.
    """
    chained = Chained()
    commits = [(place, commit, unit) for unit in units for commit, place in unit.numbered()]
    if len(units) > 1:
        commits.sort(key=_PLACE)
    for _, commit, unit in commits:
        try:
            chained.add(commit.audit, head_of)
        except CheckpointError as problem:
            raise Unchainable(unit, problem) from problem
    return chained


def sessions_of(entries: Iterable[AuditEntry]) -> list[str]:
    """Name the sessions of entries, each once."""
    return sorted({entry.session_id for entry in entries})


def lock(
    transaction: Transaction, sessions: Sequence[str], files: Sequence[str] = (), *, lock_seconds: float
) -> None:
    """Wait until nobody else changes these trails and files, and keep it so until the transaction ends."""
    if sessions or files:
        wanted = {"sessions": list(sessions), "files": list(files), "idle": _idle(lock_seconds)}
        transaction.run(_LOCK, wanted)


def begin(
    connection: Connection, sessions: Sequence[str], files: Sequence[str], *, lock_seconds: float
) -> dict[str, TrailHead]:
    """Begin a transaction, wait until nobody else changes these trails and files, answer where trails stand.

    One round trip, and so sent as text. Each statement has a snapshot of its own: what is seen under the lock
    is what whoever had it before has left.
    """
    is_one = len(sessions) == 1 and not files
    locking, reading = (_LOCK_ONE, _HEAD_OF_ONE) if is_one else (_LOCK, _HEADS)
    wanted = {"session_id": sessions[0]} if is_one else {"sessions": list(sessions), "files": list(files)}
    cursor = psycopg.ClientCursor(connection)
    query = PARAMETER.sub(r"%(\1)s", f"begin; {locking}; {reading}")
    cursor.execute(query, {**wanted, "idle": _idle(lock_seconds)})
    while cursor.nextset():
        pass
    return {name: TrailHead(name) for name in sessions} | _by_name(cursor.fetchall())


def read_heads(transaction: Transaction, sessions: Sequence[str]) -> dict[str, TrailHead]:
    """Answer where trails stand, those that are there."""
    found = transaction.rows(_HEADS, {"sessions": list(sessions)}) if sessions else []
    return _by_name(found)


def append(transaction: Transaction, chained: Chained) -> None:
    """Write entries; the locks of their sessions are held."""
    if not chained.records:
        return
    columns = zip(*chained.rows(), strict=True)
    written = {name: _ARRAYS[name](column) for name, column in zip(ENTRY_NAMES, columns, strict=True)}
    transaction.run(_APPEND, written)


def have_landed(transaction: Transaction, chained: Chained) -> bool:
    """Whether entries are there, exactly as they were sent; what got in together is there together."""
    last = chained.records[-1].head
    found = transaction.rows(_LANDED, {"session_id": last.session_id, "seq": last.seq})
    return found == [(last.hash,)]


def _idle(lock_seconds: float) -> str:
    """How long whoever has a lock may do nothing with it."""
    return f"{max(1, round(lock_seconds * 500))}ms"


def _by_name(found: Iterable[Row]) -> dict[str, TrailHead]:
    return {name: rows.read_trail_head(tuple(head), name) for name, *head in found}


_ARRAYS: dict[str, Callable[..., arrays.Array]] = {
    **dict.fromkeys(ENTRY_NAMES, arrays.text_array),
    "seq": arrays.int8_array,
    "line": arrays.bytes_array,
    "payload": arrays.bytes_array,
}
