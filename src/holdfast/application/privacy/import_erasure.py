"""Erasing from trails that came along with copies: their payloads go, their entries and tiles stay."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator

from holdfast.application.audit.audit_export import SUMS_FILE
from holdfast.application.audit.trail_copying import key_of, stored_name
from holdfast.application.imports import imports, lines_of_import
from holdfast.domain.trail import decode_entry
from holdfast.ports import Store

_PAYLOADS = "/payloads/"


def without_payloads(store: Store, workflow_ids: Collection[str]) -> tuple[dict[str, bytes | None], int]:
    """Make the files of all imports anew without the payloads that tell of workflows; count those."""
    files: dict[str, bytes | None] = {}
    count = 0
    for folder in imports(store):
        going = set(_entries(store, folder, workflow_ids))
        changed = dict(_changed(store, folder, going)) if going else {}
        if changed:
            count += sum(lost for _, lost in changed.values())
            files |= {name: data for name, (data, _) in changed.items()}
            sums = f"{folder}/{stored_name(SUMS_FILE)}"
            files[sums] = _summed(store.file(sums) or b"", folder, files)
    return files, count


def _entries(store: Store, folder: str, workflow_ids: Collection[str]) -> Iterator[tuple[str, int]]:
    """Find the entries that have a payload and tell of one of the workflows."""
    for line in lines_of_import(store, folder):
        entry = decode_entry(line, None)
        if entry.payload and entry.workflow_id in workflow_ids:
            yield entry.session_id, entry.seq


def _changed(
    store: Store, folder: str, going: set[tuple[str, int]]
) -> Iterator[tuple[str, tuple[bytes, int]]]:
    """Write the files of payloads anew that hold any of those; tell how many each loses."""
    for name in store.files(folder + _PAYLOADS):
        lines = (store.file(name) or b"").splitlines(keepends=True)
        # Whose a damaged line is nobody can tell, and nobody can prove anything with it.
        kept = [line for line in lines if (key := key_of(line)) and key not in going]
        if len(kept) < len(lines):
            yield name, (b"".join(kept), len(lines) - len(kept))


def _summed(sums: bytes, folder: str, files: dict[str, bytes | None]) -> bytes:
    """Write the sums of an import with those of the changed files."""
    lines = []
    for line in sums.decode().splitlines():
        _, _, path = line.partition("  ")
        data = files.get(f"{folder}/{path}")
        lines.append(line if data is None else f"{hashlib.sha256(data).hexdigest()}  {path}")
    return "".join(f"{line}\n" for line in lines).encode()
