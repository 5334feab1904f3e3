"""Archives: a store in one file, which is looked at as a whole before anything is taken out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from holdfast.application.history import look, read_events, read_records
from holdfast.domain.errors import CheckpointCorruptError, CheckpointError
from holdfast.ports import Store

_HINT = "Nothing was taken out of it. Ask for another copy of the archive."


def verify_archive(
    store: Store,
    workflow_ids: Iterable[str],
    on_progress: Callable[[str, int, int], None] = lambda workflow_id, done, total: None,
) -> None:
    """Check that an archive is whole: what it says about itself, and every piece of the workflows.

    Args:
        store: the archive, opened.
        workflow_ids: those that are to be taken out.
        on_progress: told each workflow that was read, as one step of one.

    Raises:
        CheckpointCorruptError: something in it is not what was committed.
    """
    for finding in store.check():
        if finding.harm:
            raise CheckpointCorruptError(
                f"the archive is damaged ({finding.problem})", place=finding.place, hint=_HINT
            )
    for workflow_id in workflow_ids:
        try:
            _read_all(store, workflow_id)
        except CheckpointError as problem:
            raise CheckpointCorruptError(
                f"the archive is damaged ({problem.message})", place=problem.place, hint=_HINT
            ) from problem
        on_progress(workflow_id, 1, 1)


def _read_all(store: Store, workflow_id: str) -> None:
    """Read every piece of a workflow; reading checks it."""
    history = look(store, workflow_id)
    for _ in read_records(store, history):
        pass
    for _ in read_events(store, history):
        pass
    for sha256 in history.blobs():
        store.blob(sha256)
    for keyframe in history.keyframes:
        store.keyframe(workflow_id, keyframe.sequence)
