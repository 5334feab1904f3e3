"""What a store holds in quarantine: reports, and their bytes."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    InvalidIdError,
)
from holdfast.domain.quarantine import Quarantined, decode_report
from holdfast.domain.quarantine_marks import FOLDER, REFUSED, workflow_prefix
from holdfast.ports import Store

_REPORT = ".json"


def reports(store: Store) -> list[Quarantined]:
    """Answer everything that was set aside, the store's own files too, the oldest first."""
    names = [name.removeprefix(FOLDER) for name in store.files(FOLDER) if name.endswith(_REPORT)]
    found = [report_or_remains(store, name.removesuffix(_REPORT)) for name in names if "/" not in name]
    return sorted(found, key=lambda one: (one.found_at, one.name))


def report_of(store: Store, name: str) -> Quarantined:
    """Answer one report.

    Raises:
        CheckpointNotFoundError: nothing of that name was set aside.
        CheckpointCorruptError: the report cannot be read.
    """
    file = f"{FOLDER}{name}{_REPORT}"
    try:
        data = store.file(file)
    except InvalidIdError:
        data = None
    if data is None:
        raise CheckpointNotFoundError(
            "nothing of that name was set aside",
            place=name,
            hint="The names are in the first column of `holdfast quarantine list`.",
        )
    return decode_report(name, data)


def report_or_remains(store: Store, name: str) -> Quarantined:
    """Answer one report; of one that cannot be read there is its name: it can still be dropped."""
    try:
        return report_of(store, name)
    except CheckpointCorruptError as problem:
        return Quarantined(name, f"{FOLDER}{name}{_REPORT}", problem.message, "", 0, "")


def parts_of_report(store: Store, name: str) -> dict[str, bytes]:
    """Answer the bytes that were set aside, by the names of the parts, as they were found.

    Raises:
        CheckpointNotFoundError: nothing of that name was set aside.
        ChecksumMismatchError: they are not what was set aside.
    """
    report = report_of(store, name)
    return report.cut(b"".join(store.file(file) or b"" for file in bytes_of(store, report)))


def bytes_of(store: Store, report: Quarantined) -> tuple[str, ...]:
    """Name the files with the bytes of a report."""
    if report.files:
        return report.files
    return tuple(name for name in store.files(f"{FOLDER}{report.name}.") if name.endswith(".bin"))


def files_of_workflow(store: Store, workflow_id: str) -> Iterator[str]:
    """Name every file that was set aside of a workflow."""
    for folder in (FOLDER, REFUSED):
        yield from store.files(folder + workflow_prefix(workflow_id))
