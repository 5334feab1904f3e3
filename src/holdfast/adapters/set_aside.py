"""What a check tells of a store's quarantine, the same for every store that keeps it as files of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from holdfast.domain.errors import CheckpointCorruptError
from holdfast.domain.quarantine import decode_report
from holdfast.domain.quarantine_marks import FOLDER
from holdfast.ports import Finding

_REPORT = ".json"


def check_quarantine(names: Iterable[str], read: Callable[[str], bytes | None]) -> Iterator[Finding]:
    """Tell what stands in quarantine and why; what was released or rebuilt harms nobody.

    Damage is told, never raised.
    """
    try:
        listed = [name for name in names if name.endswith(_REPORT) and "/" not in name.removeprefix(FOLDER)]
    except CheckpointCorruptError as damage:
        yield Finding("quarantine", damage.message)
        return
    for name in listed:
        try:
            report = decode_report(name.removeprefix(FOLDER).removesuffix(_REPORT), read(name) or b"")
        except CheckpointCorruptError as problem:
            yield Finding(f"quarantine: {name}", problem.message)
            continue
        yield Finding(f"quarantine: {report.place}", report.reason, harm=report.released is None)
