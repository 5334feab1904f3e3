"""Which checkpoints are barred: looked at with each restore, without anything that reads reports."""

from __future__ import annotations

from holdfast.domain.errors import CheckpointQuarantinedError
from holdfast.domain.quarantine_marks import mark_name
from holdfast.ports import Store


def refuse_quarantined(store: Store, workflow_id: str, sequence: int) -> None:
    """Refuse to use a checkpoint that was set aside.

    Raises:
        CheckpointQuarantinedError: it was; says under which name.
    """
    mark = store.file(mark_name(workflow_id, sequence))
    if mark is not None:
        name = mark.decode("ascii", "replace").strip()
        raise CheckpointQuarantinedError(
            "the checkpoint is in quarantine",
            place=f"{workflow_id}@{sequence}",
            hint=f"`holdfast quarantine show {name}` tells why; `recover_workflow` gives the last good one.",
        )


def is_quarantined(store: Store, workflow_id: str, sequence: int) -> bool:
    """Tell whether a checkpoint is barred."""
    return store.file(mark_name(workflow_id, sequence)) is not None
