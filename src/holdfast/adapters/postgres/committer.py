"""Committing: a statement for each group, the truth about each commit, and what to do if one is in the way.

When the connection dies nobody knows whether the statement took effect. It is sent again, the same rows under
the same keys: that waits for a transaction still under way, gets in if nothing had, and meets its own rows if
all had.

Commits with audit entries go in one statement, too, chained on top of where their sessions are remembered to
stand. Where that is not so any more, or others are writing to them, they take turns.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import errors

from holdfast.adapters.postgres import batch, plain, statement, telling, trails
from holdfast.adapters.postgres.attempt import Attempt
from holdfast.adapters.postgres.batch import Unit
from holdfast.adapters.postgres.connections import ConnectionLost, Connections
from holdfast.adapters.postgres.database import PostgresDatabase
from holdfast.adapters.postgres.faults import PASSING, told, translate, unknown, unwritten
from holdfast.adapters.postgres.trails import Chained, KnownHeads, Unchainable
from holdfast.adapters.postgres.turns import Turn
from holdfast.adapters.sql import rows
from holdfast.adapters.sql.database import Row
from holdfast.adapters.sql.reading import HEAD
from holdfast.domain import lease as leases
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointError,
    CheckpointWriteError,
    InvalidIdError,
    StoreClosedError,
    UnstorableValueError,
)
from holdfast.domain.record import Commit, Head, Lease

Outcome = Exception | None

#: What encoding raises before anything is sent: for no text, for another kind, for numbers beyond a `bigint`.
_UNSENDABLE = (UnicodeEncodeError, TypeError, struct.error, OverflowError)
#: What refuses a statement with entries as a whole, because of others or because a blob just went.
_IN_THE_WAY = (
    *(errors.UniqueViolation, errors.NotNullViolation, errors.ForeignKeyViolation),
    *(plain.NotIn, *PASSING),
)
#: How often such a statement is sent with newer heads before its units take turns.
_TRIES_MAX = 3

_MISSING_BLOBS = """
select wanted.sha256 from (select unnest(:names::text[]) as sha256) as wanted
left join blobs on blobs.sha256 = wanted.sha256 where blobs.sha256 is null
"""
_LANDED_EVENT = "select hash from events where workflow_id = :workflow_id and seq = :seq"
_LANDED_RECORD = "select checksum from checkpoints where workflow_id = :workflow_id and sequence = :sequence"
_LEASE = """
select owner, token, expires_at, released,
    expires_at > to_char(clock_timestamp(), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
from leases where workflow_id = :workflow_id
"""


@dataclass(frozen=True, slots=True)
class Met:
    """What a unit that did not get in found in its place."""

    head: Head
    lease: Lease | None


class Committer:
    """Makes commits durable."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._connections: Connections = database.connections
        self._heads = KnownHeads()

    def commit(self, commits: Sequence[Commit]) -> list[Outcome]:
        """Commit each, in one transaction as far as they are independent; answer one outcome each.

        Raises:
            CheckpointWriteError: nothing could be written, or it is unknown what was.
        """
        if len(commits) == 1 and commits[0].events and commits[0].record and commits[0].record.data:
            # What nearly every call is, without detours.
            unit = Unit((commits[0],), (0,))
            decided = self._tell([unit]) if commits[0].audit else self._alone(unit)
            return [outcome for _, outcome in decided]
        outcomes: list[Outcome] = [None] * len(commits)
        pending = list(enumerate(commits))
        while pending:
            units, pending = batch.next_round(pending)
            for unit, outcome in self._round(units):
                for place in unit.places:
                    outcomes[place] = outcome if place == unit.places[0] else _copied(outcome)
        return outcomes

    def _round(self, units: list[Unit]) -> list[tuple[Unit, Outcome]]:
        """Try units of different workflows."""
        decided: list[tuple[Unit, Outcome]] = []
        with_events: list[Unit] = []
        without: list[Unit] = []
        for unit in units:
            if unit.is_plain:
                with_events.append(unit)
                continue
            # A record's blobs are checked by the foreign key; without a record nothing refers to them.
            missing = self._missing_blobs(unit) if unit.has_bare_needs and not unit.is_empty else []
            if missing:
                decided.append((unit, rows.no_blob(missing[0])))
            elif unit.needs_a_turn or (unit.is_empty and not unit.is_told):
                decided += self._alone(unit)
            elif unit.events or unit.is_of_no_workflow:
                # Entries of no workflow go with whatever goes first.
                with_events.append(unit)
            else:
                without.append(unit)
        for fitting in (with_events, without):
            for piece in batch.statements(fitting):
                decided += self._together(piece)
        return decided

    def _together(self, units: list[Unit]) -> list[tuple[Unit, Outcome]]:
        return self._tell(units) if any(unit.is_told for unit in units) else self._try(units)

    def _alone(self, unit: Unit, *, is_repeated: bool = False) -> list[tuple[Unit, Outcome]]:
        """Try a single one, of whatever kind: inside a chain there may be commits that record nothing."""
        if unit.is_empty and not unit.is_of_no_workflow:
            outcome = self._look(unit)
            if outcome is not None or not unit.needs_a_turn:
                return [(unit, outcome)]
        if unit.needs_a_turn or unit.is_told:
            return self._tell([unit])
        return [(unit, None)] if unit.is_empty else self._try([unit], is_repeated=is_repeated)

    def _try(self, units: list[Unit], *, is_repeated: bool = False) -> list[tuple[Unit, Outcome]]:
        """Send units in one statement; where that is not possible, each in one of its own."""
        attempt = Attempt(self._connections, is_repeated=is_repeated)
        try:
            answer = attempt.send(units)
        except (psycopg.Error, *_UNSENDABLE) as fault:
            parts = units if len(units) > 1 else units[0].alone()
            if len(parts) == 1:
                return [(units[0], self._refused(units[0], fault, attempt))]
            # One of them is in the way of all: each alone shows which.
            return [pair for part in parts for pair in self._alone(part, is_repeated=attempt.is_repeated)]
        return self._decide(units, answer, is_repeated=attempt.is_repeated)

    # -- with audit entries --------------------------------------------------------------------

    def _tell(self, units: list[Unit]) -> list[tuple[Unit, Outcome]]:
        """Do units with their entries, all at once; where that is not possible, without those in the way."""
        try:
            return self._in_turn(units) if units[0].needs_a_turn else self._at_once(units)
        except Unchainable as fault:
            others = [unit for unit in units if unit is not fault.unit]
            decided = self._together(others) if others else []
            if len(fault.unit.commits) == 1:
                return [*decided, (fault.unit, fault.problem)]
            parts = fault.unit.alone()
        except (psycopg.Error, *_UNSENDABLE) as fault:
            decided, parts = [], units if len(units) > 1 else units[0].alone()
            if len(parts) == 1:
                return [(units[0], self._refused(units[0], fault))]
        return [*decided, *(pair for part in parts for pair in self._alone(part))]

    def _at_once(self, units: list[Unit]) -> list[tuple[Unit, Outcome]]:
        """Send one statement; again if the trails stood elsewhere, in turn if others are at them."""
        if self._heads.are_shared(units):
            return self._in_turn(units)
        for _ in range(_TRIES_MAX):
            chained = trails.chain_units(units, self._heads.get)
            try:
                found = self._sent(units, chained)
            except ConnectionLost:
                return self._in_turn(units, chained)
            except _IN_THE_WAY:
                break
            if not found:
                self._heads.keep(chained.after.values())
                return [(unit, None) for unit in units]
            answer = telling.read_answer(found)
            self._heads.keep(answer.heads)
            if answer.misfits and len(units) == 1:
                return self._decide(units, answer.met, is_repeated=False)
            if answer.misfits or answer.is_busy:
                break
        return self._in_turn(units)

    def _sent(self, units: list[Unit], chained: Chained) -> list[Row]:
        """Answer why not all got in; raise NotIn if that is not known yet."""
        try:
            with self._connections.connection() as connection:
                if not plain.is_plain(units, chained):
                    recorded = [unit for unit in units if not unit.is_empty]
                    return statement.send(connection, recorded, chained)
                if plain.send(connection, units[0], chained):
                    return []
                raise plain.NotIn
        except StoreClosedError:
            raise
        except CheckpointError as problem:
            raise unwritten(problem, is_repeated=False) from problem

    def _in_turn(self, units: list[Unit], sent: Chained | None = None) -> list[tuple[Unit, Outcome]]:
        turn = Turn(self._database, self._heads, units, sent)
        turned = turn.take()
        if turned.refusal is not None:
            return [(unit, turned.refusal) for unit in units]
        return self._decide(units, turned.met, is_repeated=turn.is_repeated)

    # -- the truth about each ----------------------------------------------------------------

    def _decide(
        self, units: list[Unit], answer: Iterable[Row], *, is_repeated: bool
    ) -> list[tuple[Unit, Outcome]]:
        met = {row[0]: _read_met(row) for row in answer}
        return [
            (unit, self._why_not(unit, met[unit.workflow_id], is_repeated=is_repeated))
            if unit.workflow_id in met
            else (unit, None)
            for unit in units
        ]

    def _why_not(self, unit: Unit, met: Met, *, is_repeated: bool) -> Outcome:
        if is_repeated and self._has_landed(unit, met.head):
            return None
        commit = unit.commits[0]
        fenced_off = leases.refusal(commit, met.lease)
        if fenced_off is not None:
            return fenced_off
        # Who believed right and did not get in lost the race for the row: the head has moved since.
        return commit.conflict(met.head if met.head != commit.expected else self._head(unit.workflow_id))

    def _has_landed(self, unit: Unit, head: Head) -> bool:
        """Whether the rows of a unit are there; what got in together is there together."""
        for record in unit.records()[-1:]:
            # Never deleted, and its checksum is like no other's.
            key = {"workflow_id": unit.workflow_id, "sequence": record.entry.sequence}
            return self._database.rows(_LANDED_RECORD, key) == [(record.entry.checksum,)]
        last = unit.events[-1]
        found = self._database.rows(_LANDED_EVENT, {"workflow_id": unit.workflow_id, "seq": last.seq})
        if not found and head.event_seq >= last.seq:
            raise unknown("its event was removed before it could be seen", unit.workflow_id)
        return found == [(last.hash,)]

    def _look(self, unit: Unit) -> Outcome:
        """Answer commits that record nothing: is the writer where it believes to be?"""
        commit = unit.commits[0]
        if any(c.keyframe or c.transitions or c.blobs for c in unit.commits):
            return CheckpointWriteError(
                "a commit records something, but neither an event nor a checkpoint",
                place=commit.workflow_id,
                hint="Record an event with it.",
            )
        found = self._database.rows(_LEASE, {"workflow_id": commit.workflow_id})
        fenced_off = leases.refusal(commit, _read_lease(commit.workflow_id, found[0]) if found else None)
        if fenced_off is not None:
            return fenced_off
        head = self._head(commit.workflow_id)
        if head != commit.expected:
            return commit.conflict(head)
        missing = self._missing_blobs(unit)
        return rows.no_blob(missing[0]) if missing else None

    def _head(self, workflow_id: str) -> Head:
        [row] = self._database.rows(HEAD, {"workflow_id": workflow_id})
        return rows.read_head(row, workflow_id)

    def _missing_blobs(self, unit: Unit) -> list[str]:
        names = {sha256 for sha256, _, _ in unit.uses()} | {n for c in unit.commits for n in c.needs}
        wanted = sorted(names - unit.blobs.keys())
        found = self._database.rows(_MISSING_BLOBS, {"names": wanted}) if wanted else []
        return [sha256 for (sha256,) in found]

    # -- what stands in the way of a single one -----------------------------------------------

    def _refused(self, unit: Unit, fault: Exception, attempt: Attempt | None = None) -> Outcome:
        """Tell what an error means for the one commit that was sent; raise what concerns all."""
        commit = unit.commits[0]
        if not isinstance(fault, psycopg.Error):
            return _unsendable(fault, commit.workflow_id)
        if isinstance(fault, errors.ForeignKeyViolation):
            missing = self._missing_blobs(unit)
            if missing:
                return rows.no_blob(missing[0])
            # It went just when this commit began to use it, and came back; or goes in with this commit.
            return self._again(unit, attempt)
        if isinstance(fault, errors.LockNotAvailable):
            if attempt is not None and attempt.is_repeated:
                raise unknown("another client holds its place", unit.workflow_id)
            return _busy(commit, self._connections.address.lock_seconds)
        if isinstance(fault, errors.UniqueViolation):
            return commit.conflict(self._head(commit.workflow_id))
        problem = translate(fault, commit.workflow_id, is_writing=True)
        if isinstance(problem, InvalidIdError):
            return problem
        if isinstance(fault, psycopg.DataError | errors.ProtocolViolation):
            return UnstorableValueError(f"the database refused: {told(fault)}", place=commit.workflow_id)
        raise problem from fault

    def _again(self, unit: Unit, attempt: Attempt | None) -> Outcome:
        if attempt is None or not attempt.may_repeat():
            return CheckpointConflictError(
                "blobs that the commit refers to come and go", place=unit.workflow_id, hint="Try again."
            )
        try:
            answer = attempt.send([unit])
        except psycopg.Error as fault:
            return self._refused(unit, fault, attempt)
        [(_, outcome)] = self._decide([unit], answer, is_repeated=attempt.is_repeated)
        return outcome


def _read_met(row: Row) -> Met:
    workflow_id, *head, owner, token, expires_at, released, is_live = row
    found = None if token is None else (owner, token, expires_at, released, is_live)
    return Met(
        rows.read_head(tuple(head), workflow_id), None if found is None else _read_lease(workflow_id, found)
    )


def _read_lease(workflow_id: str, row: Row) -> Lease | None:
    owner, token, expires_at, released, is_live = row
    return None if released else Lease(workflow_id, owner, token, expires_at, bool(is_live))


def _copied(outcome: Outcome) -> Outcome:
    """Tell another commit of a chain what became of it: an error object belongs to one caller only."""
    if not isinstance(outcome, CheckpointError):
        return outcome
    return type(outcome)(outcome.message, place=outcome.place, hint=outcome.hint)


def _busy(commit: Commit, seconds: float) -> CheckpointConflictError:
    return CheckpointConflictError(
        f"another client is in the middle of a commit to this workflow, or to its session, for more than "
        f"{seconds:g} seconds",
        place=commit.workflow_id,
        hint="It has stopped, or the server is overloaded: load the latest state and try again.",
    )


def _unsendable(fault: Exception, workflow_id: str) -> CheckpointError:
    if not isinstance(fault, UnicodeEncodeError):
        return UnstorableValueError(
            f"a number cannot be stored in PostgreSQL ({fault})",
            place=workflow_id,
            hint="It keeps whole numbers of 64 bits.",
        )
    return InvalidIdError(
        "a name holds what UTF-8 cannot write",
        place=repr(fault.object[fault.start : fault.end]),
        hint="Lone surrogates are no characters.",
    )
