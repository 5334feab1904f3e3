"""Journals of runs over real stores, for tests of what works on them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from holdfast import CheckpointService
from holdfast.domain.state import WorkflowState
from holdfast.execution.journal import Journal, Save

W = "WF-1"
#: Longer than anything here takes; a test that needs it has failed.
PATIENCE_SECONDS = 60


def begun(
    service: CheckpointService, *subscribers: Callable[[str, Mapping[str, Any]], None], **fields: Any
) -> Journal:
    """Begin the journal of a run with a first checkpoint."""
    state = WorkflowState(workflow_id=W, **fields)
    journal = Journal(service.recording, W, state.to_fields(), subscribers)
    journal.commit(Save("started"))
    return journal


def recovered(service: CheckpointService) -> dict[str, Any]:
    """Answer the fields of the state that recovery brings back."""
    found = service.recording.recover(W)
    assert found.state is not None
    assert [text for text in found.warnings if "skipped" in text] == []
    return found.state.to_fields()


def at_once(*works: Callable[[], object]) -> None:
    """Run functions in threads that begin together; raise what one of them raised."""
    begin, faults = threading.Barrier(len(works)), list[BaseException]()

    def run(work: Callable[[], object]) -> None:
        begin.wait(PATIENCE_SECONDS)
        try:
            work()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    if faults:
        raise faults[0]
