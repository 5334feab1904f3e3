"""Commits that one statement cannot do: they wait until the trails and files they change are theirs.

A transaction of several statements: locks, what is recorded, the entries of what got in, files. It is for
sessions that others write to at this moment; for files, which are compared before they are replaced; and for
finding out what became of a statement whose answer was lost. That one holds the same locks if it got as far,
and if it comes late it meets rows in its place.

Its beginning, the locks and where the trails stand are one round trip; what is recorded is the next; and
where that is a plain commit, its end the third.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import psycopg
from psycopg import errors

from holdfast.adapters.postgres import arrays, plain, statement, trails
from holdfast.adapters.postgres.batch import Unit
from holdfast.adapters.postgres.connection import Connection
from holdfast.adapters.postgres.connections import ConnectionLost, Deadline
from holdfast.adapters.postgres.database import ATTEMPTS_MAX, PostgresDatabase, Statements
from holdfast.adapters.postgres.faults import PASSING, unknown, unwritten
from holdfast.adapters.postgres.trails import Chained, KnownHeads
from holdfast.adapters.sql import trail
from holdfast.adapters.sql.database import Row
from holdfast.domain.audit_entry import TrailHead
from holdfast.domain.errors import CheckpointError, StoreClosedError
from holdfast.domain.record import Commit

# All at once: a piece of the tree is many small files.
_PUT_FILES = """
insert into files (name, data) select * from unnest(:names::text[], :contents::bytea[])
on conflict (name) do update set data = excluded.data
"""
_DROP_FILES = "delete from files where name = any(:names::text[])"
_ERASE = """
update audit set payload = null from unnest(:sessions::text[], :seqs::bigint[]) as erased(session_id, seq)
where audit.session_id = erased.session_id and audit.seq = erased.seq and audit.payload is not null
"""
_LANDED_EVENT = "select hash from events where workflow_id = :workflow_id and seq = :seq"
_LANDED_RECORD = "select checksum from checkpoints where workflow_id = :workflow_id and sequence = :sequence"


@dataclass(frozen=True, slots=True)
class Turned:
    """What became of units: the rows of those that did not get in, or why not even that was tried."""

    met: list[Row] = field(default_factory=list)
    refusal: Exception | None = None


class Turn:
    """Doing some units in a transaction, until it is known what became of it."""

    def __init__(
        self,
        database: PostgresDatabase,
        heads: KnownHeads,
        units: Sequence[Unit],
        sent: Chained | None = None,
    ) -> None:
        self._connections = database.connections
        self._place = database.place
        self._heads = heads
        self._units = units
        #: What the last try wanted to write, if it may have been kept.
        self._sent = sent
        #: Whether an earlier try may have been kept.
        self.is_repeated = sent is not None
        self._attempts = 0
        self._deadline: Deadline | None = None

    def take(self) -> Turned:
        """Answer what became of the units.

        Raises:
            psycopg.Error: something stands in their way, and nothing was kept.
            Unchainable: an entry of one of them does, and nothing was kept.
            CheckpointWriteError: the server is away; says whether anything may have been kept.
        """
        if self.is_repeated:
            self._await_server()
        while True:
            try:
                return self._once()
            except ConnectionLost:
                self.is_repeated = self.is_repeated or self._sent is not None
                self._await_server()
            except (*PASSING, errors.ForeignKeyViolation) as fault:
                # A blob may have gone at this moment; but in a group nobody waits for the blobs of others.
                is_alone = len(self._units) == 1 and len(self._units[0].commits) == 1
                if not self._may_repeat() or not (isinstance(fault, PASSING) or is_alone):
                    raise
            except errors.LockNotAvailable:
                if not self.is_repeated:
                    raise
                if self._waited_long_enough():
                    raise unknown("another client holds its place", self._place) from None
            except CheckpointError as problem:
                if isinstance(problem, StoreClosedError) and not self.is_repeated:
                    raise
                raise unwritten(problem, is_repeated=self.is_repeated) from problem

    def _once(self) -> Turned:
        with self._connections.connection() as connection:
            with self._begun(connection) as heads:
                turned, chained = self._do(connection, heads)
            self._heads.keep(chained.after.values())
            return turned

    @contextmanager
    def _begun(self, connection: Connection) -> Iterator[dict[str, TrailHead]]:
        """Begin a transaction, wait for the turn, and tell where the trails stand then; commit in the end."""
        commits = [commit for unit in self._units for commit in unit.commits]
        sessions = trails.sessions_of(entry for commit in commits for entry in commit.audit)
        files = sorted({name for commit in commits for name in (*commit.files, *commit.expected_files)})
        lock_seconds = self._connections.address.lock_seconds
        try:
            heads = trails.begin(connection, sessions, files, lock_seconds=lock_seconds)
            self._heads.compare(heads)
            yield heads
            connection.execute("commit")
        except BaseException:
            if not connection.closed:
                with suppress(psycopg.Error):
                    connection.rollback()
            raise

    def _do(self, connection: Connection, heads: Mapping[str, TrailHead]) -> tuple[Turned, Chained]:
        transaction = Statements(connection, self._place)
        if self._sent is not None and self._has_landed(transaction, self._sent):
            return Turned(), self._sent
        for commit in (commit for unit in self._units for commit in unit.commits):
            refusal = trail.file_refusal(transaction, commit)
            if refusal is not None:
                return Turned(refusal=refusal), Chained()
        self._sent = chained = trails.chain_units(self._units, heads.__getitem__)
        if plain.is_plain(self._units, chained) and plain.send(connection, self._units[0], chained):
            return Turned(), chained
        recorded = [unit for unit in self._units if not unit.is_empty]
        met = statement.send(connection, recorded) if recorded else []
        outside = {row[0] for row in met}
        kept = [unit for unit in self._units if unit.workflow_id not in outside]
        if met:
            # What did not get in is not told.
            self._sent = chained = trails.chain_units(kept, heads.__getitem__)
        trails.append(transaction, chained)
        for commit in (commit for unit in kept for commit in unit.commits):
            _keep_files(transaction, commit)
        return Turned(met), chained

    def _has_landed(self, transaction: Statements, sent: Chained) -> bool:
        """Whether an earlier try was kept; what was sent together is there together.

        Files that already hold what was to be written are taken for written.
        """
        if sent.records and not trails.have_landed(transaction, sent):
            return False
        for unit in self._units:
            if not unit.is_empty:
                return _is_recorded(transaction, unit, is_told=bool(sent.records))
        commits = (commit for unit in self._units for commit in unit.commits)
        files = [pair for commit in commits for pair in commit.files.items()]
        are_written = bool(files) and all(trail.read_file(transaction, name) == data for name, data in files)
        return bool(sent.records) or are_written

    def _may_repeat(self) -> bool:
        self._attempts += 1
        return self._attempts < ATTEMPTS_MAX

    def _await_server(self) -> None:
        self._deadline = self._deadline or self._connections.deadline()
        try:
            self._connections.await_server(self._deadline)
        except CheckpointError as problem:
            raise unwritten(problem, is_repeated=self.is_repeated) from problem

    def _waited_long_enough(self) -> bool:
        self._deadline = self._deadline or self._connections.deadline()
        return self._deadline.is_over


def _keep_files(transaction: Statements, commit: Commit) -> None:
    """Replace and remove the files, and erase the payloads, that a commit names."""
    put = [(name, data) for name, data in commit.files.items() if data is not None]
    dropped = [name for name, data in commit.files.items() if data is None]
    if put:
        contents = arrays.bytes_array([data for _, data in put])
        transaction.run(_PUT_FILES, {"names": [name for name, _ in put], "contents": contents})
    if dropped:
        transaction.run(_DROP_FILES, {"names": dropped})
    if commit.erased:
        sessions, seqs = zip(*commit.erased, strict=True)
        transaction.run(_ERASE, {"sessions": list(sessions), "seqs": arrays.int8_array(seqs)})


def _is_recorded(transaction: Statements, unit: Unit, *, is_told: bool) -> bool:
    """Whether the rows of a unit are there. An event may have been removed since: its entries were not."""
    for record in unit.records()[-1:]:
        key = {"workflow_id": unit.workflow_id, "sequence": record.entry.sequence}
        return transaction.rows(_LANDED_RECORD, key) == [(record.entry.checksum,)]
    last = unit.events[-1]
    found = transaction.rows(_LANDED_EVENT, {"workflow_id": unit.workflow_id, "seq": last.seq})
    return found == [(last.hash,)] or (not found and is_told)
