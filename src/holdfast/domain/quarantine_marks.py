"""Names of what is set aside: all that a restore needs to know of a quarantine."""

from __future__ import annotations

import hashlib

FOLDER = "quarantine/"
#: One file per checkpoint that must not be used, named so that it is found without reading any report.
REFUSED = f"{FOLDER}refused/"
HASH_CHARS = 16


def workflow_prefix(workflow_id: str) -> str:
    """Begin the names of everything set aside of a workflow; an id may be no name of a file."""
    return hashlib.sha256(workflow_id.encode()).hexdigest()[:HASH_CHARS] + "-"


def mark_name(workflow_id: str, sequence: int) -> str:
    """Name the file whose presence bars a checkpoint."""
    return f"{REFUSED}{workflow_prefix(workflow_id)}{sequence:06d}"
