"""What is done after a commit and not before it: keyframes, and what retention lets go."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.application.commit_queue import CommitQueue, Ticket
from holdfast.application.keyframes import Caption, build_keyframe, lift_stored
from holdfast.application.kit import Kit
from holdfast.application.snapshot import Snapshot
from holdfast.domain.errors import CheckpointError, StoreClosedError

_LOG = logging.getLogger("holdfast")
#: A keyframe that cannot be written this often is given up; restoring just reads more deltas.
_ATTEMPTS_MAX = 3


@dataclass(slots=True)
class KeyframeJob:
    """A keyframe to write once its checkpoint is durable."""

    caption: Caption
    snapshot: Snapshot
    ticket: Ticket | None = None
    attempts: int = 0
    #: The snapshot is what is stored: it was read back, or nothing in it had to be hidden.
    is_as_stored: bool = False


class Housekeeper:
    """Works through jobs one at a time, in a thread of its own or when asked."""

    def __init__(self, kit: Kit, queue: CommitQueue, after_keyframe: Callable[[Caption], None]) -> None:
        self._kit = kit
        self._queue = queue
        self._after_keyframe = after_keyframe
        self._jobs: deque[KeyframeJob] = deque()
        self._work = threading.Condition()
        self._turn = threading.RLock()
        self._thread: threading.Thread | None = None
        self._has_news = False
        self._closed = False
        #: Causes that were told since a keyframe last succeeded: on a full disk every one fails alike.
        self._told: set[tuple[str, str]] = set()

    def owe(self, job: KeyframeJob) -> None:
        """Take over a job; returns at once."""
        with self._work:
            self._jobs.append(job)
            self._has_news = True
            if not self._kit.background or self._closed:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="holdfast-housekeeper", daemon=True)
                self._thread.start()
            self._work.notify()

    @property
    def has_work(self) -> bool:
        """Tell whether a job waits."""
        return bool(self._jobs)

    def run(self) -> None:
        """Do everything that was owed up to now; what fails again stays owed."""
        with self._turn:
            for _ in range(len(self._jobs)):
                job = self._next()
                if job is not None and not self._do(job):
                    self._jobs.append(job)

    def close(self) -> None:
        """Finish what is owed, as far as it can be, and stop. Idempotent."""
        with self._work:
            self._closed = True
            self._work.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self.run()

    def _serve(self) -> None:
        while True:
            with self._work:
                # What failed waits for the next job, for a flush or for the end: no spinning on it.
                self._work.wait_for(lambda: self._has_news or self._closed)
                self._has_news = False
                if self._closed:
                    return
            self.run()

    def _next(self) -> KeyframeJob | None:
        try:
            return self._jobs.popleft()
        except IndexError:
            return None

    def _do(self, job: KeyframeJob) -> bool:
        """Write one keyframe; False if it should be tried again."""
        if job.ticket is not None:
            self._queue.settle(job.ticket)
            if job.ticket.error is not None or job.ticket.lineage.is_moved:
                return True
            if job.ticket.is_held:
                # What lies in the second store is made again, as another record.
                return job.ticket.intent is None
        try:
            write_keyframe(self._kit, job.caption, self._tree(job))
            self._after_keyframe(job.caption)
        except StoreClosedError:
            return True
        except CheckpointError as problem:
            job.attempts += 1
            self._tell(job, problem)
            return job.attempts >= _ATTEMPTS_MAX
        self._told.clear()
        return True

    def _tree(self, job: KeyframeJob) -> dict[str, Any]:
        """Give the state as the changes before it give it: without secrets."""
        tree: dict[str, Any] = job.snapshot.plain(self._kit.packer)
        if self._kit.redactor is not None and not job.is_as_stored:
            tree = self._kit.redactor.tree(tree)
        return tree

    def _tell(self, job: KeyframeJob, problem: CheckpointError) -> None:
        """Log a failure unless the same was told before and nothing has succeeded since."""
        cause = problem.code, problem.message
        if cause not in self._told:
            self._told.add(cause)
            _LOG.warning(
                "the keyframe of %s@%d: %s (told once until a keyframe is written again)",
                job.caption.workflow_id,
                job.caption.sequence,
                problem,
            )


def write_keyframe(kit: Kit, caption: Caption, state: dict[str, Any]) -> None:
    """Store the complete state of a committed checkpoint, as a plain tree."""
    # With the key of the checkpoint itself: where that was destroyed, nothing may bring the state back.
    vault = kit.vault
    sealer = None if vault is None else vault.sealer_with(caption.key_id, caption.workflow_id)
    tree, blobs = lift_stored(state, kit.blob_threshold_bytes, kit.store.has_blob, sealer)
    kit.store.put_keyframe(caption.workflow_id, build_keyframe(caption, tree, blobs, kit.formats, sealer))
