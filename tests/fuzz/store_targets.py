"""A whole store, of which one file is what somebody else made of it: read, written, closed."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import holdfast
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointError
from tests.fuzz import mending, real_store
from tests.fuzz.target import Target

_MANIFEST = "manifest.jsonl"
_MENDED = {
    _MANIFEST: mending.summed_lines,
    "lease.json": mending.summed_lines,
    "sessions.jsonl": mending.summed_lines,
}
#: From here on the first byte says that manifests are gone, and have to be made anew.
_WITHOUT_MANIFESTS = 128


@cache
def _folder() -> Path:
    folder = Path(real_store.folder())
    _fill(folder)
    return folder


def _fill(folder: Path) -> None:
    for path, data in real_store.files().items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


@cache
def _paths() -> list[str]:
    return sorted(path for path in real_store.files() if not path.startswith("journal/"))


def _chosen(data: bytes) -> tuple[str, bytes]:
    """Choose a file by the first byte; the rest is what stands in it, with sums made right."""
    path = _paths()[data[0] % len(_paths()) if data else 0]
    return path, _MENDED.get(Path(path).name, bytes)(data[1:])


def _try(call: Callable[..., Any], *given: object, **named: object) -> None:
    with suppress(CheckpointError):
        call(*given, **named)


def _whole_store(data: bytes) -> None:
    """Read everything there is."""
    path, changed = _chosen(data)
    place = _folder() / path
    place.write_bytes(changed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _read_everything(str(_folder()))
    finally:
        place.write_bytes(real_store.files()[path])


def _read_everything(url: str) -> None:
    with holdfast.open(url, read_only=True) as service:
        for workflow_id in ("WF-1", "WF-2"):
            for ask in (
                service.list_checkpoints,
                service.load_latest,
                service.plan_recovery,
                service.lease_of,
            ):
                _try(ask, workflow_id)
            _try(lambda name: list(service.events(name)), workflow_id)
        for look in (service.tokens, service.sessions, service.holds, service.subjects):
            _try(look.listing)
        _try(service.quarantine.entries)
        service.audit.verify_chain_integrity("s-1")
        list(service.audit.query_events(session_id="s-1"))


def _written_store(data: bytes) -> None:
    """Write to it, let it recover and remove, and close it, which leaves files for people behind."""
    path, changed = _chosen(data)
    with tempfile.TemporaryDirectory(prefix="holdfast-fuzz-") as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        _fill(folder)
        if data and data[0] >= _WITHOUT_MANIFESTS:
            for manifest in folder.rglob(_MANIFEST):
                manifest.unlink()
        (folder / path).write_bytes(changed)
        with suppress(CheckpointError), holdfast.open(name, journal_bytes=1 << 18) as service:
            _write_everything(service)


def _write_everything(service: CheckpointService) -> None:
    for workflow_id in ("WF-1", "WF-2"):
        _try(service.append_event, workflow_id, "TICK")
        _try(service.recover_workflow, workflow_id)
        _try(service.create_checkpoint, workflow_id, {"n": 1})
        _try(service.prune_checkpoints, workflow_id, retain_count=2, retain_days=0)
    _try(service.erasure.workflow, "WF-1", reason="request 1")
    _try(service.holds.place, workflow_id="WF-1", reason="case 2")


def _seeds() -> Iterable[bytes]:
    return [bytes([at]) + real_store.files()[path] for at, path in enumerate(_paths())]


def _written_seeds() -> Iterable[bytes]:
    """Those that a writer believes without a look at a record, and records without their manifest."""
    believed = ("recovery/", "holds/", "keys/", "leases/", "sessions/", "events/")
    for at, path in enumerate(_paths()):
        if path.startswith(believed):
            yield bytes([at]) + real_store.files()[path]
        if path.startswith(("events/", "checkpoints/")):
            first = next(one for one in range(_WITHOUT_MANIFESTS, 256) if one % len(_paths()) == at)
            yield bytes([first]) + real_store.files()[path]


TARGETS = (
    Target("whole_store", _whole_store, _seeds),
    Target("written_store", _written_store, _written_seeds),
)
