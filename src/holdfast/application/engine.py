"""The machinery behind both faces of the service: one writer, one queue, one reader, one housekeeper."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from holdfast.application.audit.log_name import signer_here
from holdfast.application.batching import Batch
from holdfast.application.commands import CheckpointName, CheckpointOptions, CreateCheckpoint, State
from holdfast.application.commit_queue import CommitQueue, Ticket
from holdfast.application.faults.health import Health, Listeners
from holdfast.application.faults.safety import Safety
from holdfast.application.faults.space import SpaceWatch
from holdfast.application.fork_gate import GATE
from holdfast.application.housekeeping import Housekeeper
from holdfast.application.keyframes import Caption
from holdfast.application.kit import Kit
from holdfast.application.late_rooms import LateRooms
from holdfast.application.reading import Reader
from holdfast.application.recovery_files import LATEST_MAX, RecoveryFiles
from holdfast.application.redaction.redacting import LOGS
from holdfast.application.resolve import as_point, uuid_of
from holdfast.application.trailing import Trail
from holdfast.application.writer import Writer
from holdfast.domain.checkpoint import CheckpointType, usual_type
from holdfast.domain.errors import (
    CheckpointError,
    InvalidStateError,
    StoreClosedError,
)
from holdfast.domain.ids import check_id, check_workflow_id
from holdfast.domain.recovery import RecoveryMode, RecoveryResult
from holdfast.domain.retention import RetentionPolicy
from holdfast.domain.state import WorkflowState, as_state

if TYPE_CHECKING:
    from holdfast.application.observing import CommitWatch
    from holdfast.application.recovery.incomplete import StartUp
    from holdfast.application.retain import PruneResult
    from holdfast.application.validate import ValidationResult

_LOG = logging.getLogger("holdfast")
#: From so many checkpoints on, retention waits until a workflow has grown by one in so many, or by so many.
_LONG_WORKFLOW = 1_000
_RETAINED_SHARE = 16
_RETAINED_MAX = 4_096


class Engine(LateRooms):
    """Carries out what both faces offer."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        #: The first commit nobody waited for that failed since the last flush.
        self.failure: Exception | None = None
        #: Makes the face that handlers record through.
        self.open_face: Callable[[], Any] | None = None
        self.listeners = Listeners()
        self.begin()
        _ENGINES.add(self)

    def begin(self) -> None:
        """Set up everything a process needs of its own: at the start, and again in a forked child."""
        kit = self.kit
        if kit.redactor is not None:
            kit.redactor.begin()
        # A child makes its own of these too.
        self.forget_rooms()
        watch = self._watch()
        commit = kit.store.commit if watch is None else watch.commit
        self.queue = CommitQueue(commit, lambda *refusal: self.trail.refused(*refusal))
        self.trail = Trail(kit, self.queue, self._owe_head)
        self.space = SpaceWatch(kit, self.trail)
        #: Whether a head is due, where no thread signs it.
        self._head_due = False
        #: Where long workflows are looked at again by retention.
        self._retained: dict[str, int] = {}
        self.housekeeper = Housekeeper(kit, self.queue, self._retain)
        self.writer = self._writer(watch, getattr(self, "writer", None))
        self.safety = Safety(kit, self.queue, self.writer, self.trail, self.prune, self.listeners)
        self.batch = Batch(kit, self.queue, self.writer, self.heard)
        self.reader = self._reader()

    def _watch(self) -> CommitWatch | None:
        """Make what measures commits; nobody waits for its import where nobody counts or traces."""
        if not self.is_watched:
            return None
        from holdfast.application.observing import CommitWatch

        return CommitWatch(self.kit.store.commit)

    def _writer(self, watch: CommitWatch | None, parent: Writer | None) -> Writer:
        """Make what prepares commits; a forked child leaves those leases alone that its parent's acquired."""
        writer = self._fresh_writer(watch)
        if parent is not None:
            writer.follow(parent)
        return writer

    def _fresh_writer(self, watch: CommitWatch | None) -> Writer:
        """Answer a writer; where somebody counts or traces, one that tells of what it prepares."""
        if watch is None:
            return Writer(self.kit, self.queue, self.housekeeper, self.trail)
        from holdfast.application.watched_writer import WatchedWriter

        self.queue.on_decided = watch.decided
        return WatchedWriter(self.kit, self.queue, self.housekeeper, self.trail, watch)

    def _reader(self) -> Reader:
        """Make what answers questions; where somebody counts or traces, one that tells of it."""
        if not self.is_watched:
            return Reader(self.kit, self.trail)
        from holdfast.application.recovery.watched_recovery import WatchedReader

        return WatchedReader(self.kit, self.trail)

    def face(self) -> Any:
        """Give handlers a face: what they record goes through here, under the lease of the recovery."""
        if self.open_face is None:
            raise InvalidStateError("nobody gave this engine a face for handlers")
        return self.open_face()

    def name_by_uuid(self, options: CheckpointOptions) -> CheckpointOptions:
        """Replace the names of other checkpoints by their UUIDs; reads the store where it has to."""
        if "parent_checkpoint_id" not in options and "dependent_checkpoint_ids" not in options:
            return options
        named = options.copy()
        if (parent := options.get("parent_checkpoint_id")) is not None:
            named["parent_checkpoint_id"] = uuid_of(self.kit.store, parent)
        if "dependent_checkpoint_ids" in options:
            names = options["dependent_checkpoint_ids"]
            named["dependent_checkpoint_ids"] = [uuid_of(self.kit.store, name) for name in names]
        return named

    def checkpoint_command(
        self, workflow_id: str, state: State, options: CheckpointOptions
    ) -> CreateCheckpoint:
        """Check what a caller gave and put it into a command."""
        if not options:
            check_workflow_id(workflow_id)
            whole = as_state(workflow_id, state)
            fields, session_id = whole.to_fields(), whole.session_id or None
            return CreateCheckpoint(
                workflow_id, fields, usual_type(None), whole.listed_phase, None, None, None, None, session_id
            )
        given: dict[str, Any] = dict(self.name_by_uuid(options))
        check_workflow_id(workflow_id)
        for kind in ("stage", "agent", "session"):
            if (text := given.get(f"{kind}_id")) is not None:
                check_id(kind, text)
        whole = as_state(workflow_id, state)
        given["session_id"] = given.get("session_id") or whole.session_id or None
        asked_type = given.pop("type", None)
        return CreateCheckpoint(
            workflow_id,
            whole.to_fields(),
            _type(asked_type, given.get("agent_id")),
            phase=whole.listed_phase,
            parent_uuid=given.pop("parent_checkpoint_id", None),
            dependent_uuids=tuple(given.pop("dependent_checkpoint_ids", ())),
            append_only=_paths(given.pop("append_only", ()), state),
            **given,
        )

    def state_at(self, name: CheckpointName) -> WorkflowState:
        """Answer the state at a checkpoint or a point, verified; a face calls this for whoever is warned."""
        point = as_point(name)
        if point is None:
            return self.reader.restore(name, stacklevel=4)
        return self.travel.state_at(point, stacklevel=4)

    def fork_command(self, name: CheckpointName, new_workflow_id: str) -> CreateCheckpoint:
        """Make the first checkpoint of a new workflow out of another's state at any point."""
        return self.travel.fork_command(name, new_workflow_id)

    def prune(
        self, workflow_id: str, policy: RetentionPolicy, *, dry_run: bool = False, asked_by: str = "asked"
    ) -> PruneResult:
        """Remove what a policy does not keep and nothing kept needs.

        Args:
            asked_by: whom it is counted for.

        Raises:
            LegalHoldError: the workflow has to stay as it is.
        """
        return self.removing.prune(workflow_id, policy, dry_run=dry_run, asked_by=asked_by)

    def delete(self, name: CheckpointName) -> bool:
        """Remove one checkpoint; False if there is none."""
        return self.removing.delete(name)

    def validate(self, name: CheckpointName) -> ValidationResult:
        """Check a checkpoint, and note how that went."""
        return self.validation(name)

    def heard(self, ticket: Ticket) -> None:
        """Keep the first failure that nobody waited for, until the next flush."""
        self.failure = self.failure or ticket.error

    def start_up(self) -> list[StartUp]:
        """Recover what crashed, where that is configured: resumed if the program brought handlers along."""
        if not self.kit.recovery.auto:
            return []
        from holdfast.application.recovery.incomplete import start_up

        return start_up(self.kit, self._recover_crashed)

    def _recover_crashed(self, workflow_id: str) -> RecoveryResult:
        if self.kit.app.handlers.list_handlers():
            return self.recovery.resume_crashed(workflow_id)
        return self.recovery.recover_workflow(workflow_id, RecoveryMode.LATEST, None)

    def wait(self, ticket: Ticket) -> Any:
        """Answer a ticket's result when it is durable; do what is owed where no thread does."""
        result = self.queue.wait(ticket)
        if ticket.is_held:
            result = self.safety.receipt(ticket)
        if not self.kit.background and self.housekeeper.has_work:
            self.housekeeper.run()
        return result

    def health(self) -> Health:
        """Tell how things stand with the store."""
        return self.safety.health()

    def flush(self) -> None:
        """Wait for everything queued and everything owed; raise what failed unheard since the last time."""
        self.queue.flush()
        self.safety.flush()
        self.trail.flush()
        self.queue.flush()
        self.housekeeper.run()
        if self._head_due:
            self._sign()
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Finish everything and close the store. Idempotent."""
        if self.has_made("resumption"):
            self.resumption.claims.close()
        self.batch.close()
        self.safety.close()
        if self.trail.close():
            self._sign()
        RecoveryFiles(self.kit, self.trail).record(self.writer.bases.recent(LATEST_MAX))
        self.queue.close()
        self.housekeeper.close()
        self.kit.store.close()
        _ENGINES.discard(self)

    def _owe_head(self) -> None:
        """See to it that a head is signed soon: in a thread, or with the next flush."""
        self._head_due = True
        self.space.look()
        if self.kit.background:
            threading.Thread(target=self._sign, name="holdfast-heads", daemon=True).start()

    def _sign(self) -> None:
        """Sign a head where there is a key; what goes wrong keeps nobody from working."""
        self._head_due = False
        try:
            # The first signature imports what signs.
            with GATE:
                if signer_here(self.kit) is not None:
                    self.keeper.anchor()
        except StoreClosedError:
            return
        except CheckpointError as problem:
            _LOG.warning("no head of the log was signed: %s", problem)

    def _retain(self, caption: Caption) -> None:
        """Let retention run, after a new keyframe made it worth it."""
        self.space.look()
        policy, workflow_id, sequence = self.kit.retention, caption.workflow_id, caption.sequence
        if policy is None or sequence < self._retained.get(workflow_id, 0):
            return
        oldest = next(self.kit.store.entries(workflow_id), None)
        if oldest is None or policy.keeps_all(oldest, self.kit.clock.now()):
            return
        if self.holds.stands_against(workflow_id):
            return
        self.prune(workflow_id, policy, asked_by="retention")
        # It looks at all there is: of a long workflow not after each keyframe, or commits would pay for that.
        if sequence >= _LONG_WORKFLOW:
            self._retained[workflow_id] = sequence + min(sequence // _RETAINED_SHARE, _RETAINED_MAX)


def _paths(append_only: Iterable[str], state: State) -> frozenset[str]:
    """Name fields from the root of the state: those of a plain mapping are in the context."""
    if isinstance(state, WorkflowState):
        return frozenset(append_only)
    return frozenset(f"context.{path}" for path in append_only)


def _type(given: CheckpointType | str | None, agent_id: str | None) -> CheckpointType:
    if given is None:
        return usual_type(agent_id)
    try:
        return CheckpointType(given)
    except ValueError:
        raise InvalidStateError(
            f"{given!r} is no type of checkpoint", hint=f"Use one of {', '.join(CheckpointType)}."
        ) from None


#: Everything that was not closed, for the end of the process and for children that inherit it.
_ENGINES: weakref.WeakSet[Engine] = weakref.WeakSet()


def _at_exit() -> None:
    """Finish what is queued: the background threads end with the process."""
    for engine in list(_ENGINES):
        with suppress(CheckpointError):
            engine.close()


def _after_fork() -> None:
    """Start anew in a child: its parent's threads, locks and queued commits are not its own."""
    LOGS.begin_anew()
    for engine in list(_ENGINES):
        engine.begin()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
