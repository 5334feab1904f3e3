"""What `holdfast doctor --fix` mends: only what changes nothing that is stored."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.cli.machine import INFO, WARN, Check, files_below
from holdfast.cli.opening import writing

if TYPE_CHECKING:
    from holdfast.cli.changing import Change
    from holdfast.cli.group import Call

_OTHERS = 0o077
_PATH_SCHEMES = ("file", "sqlite")


def mended(call: Call, url: str, checks: Iterable[Check], change: Change) -> list[str]:
    """Mend what can be; answer what that was, or in a dry run would be."""
    found = {check.name: check.status for check in checks}
    scheme, _, place = url.partition(":")
    done = []
    if found.get("journal") == INFO:
        done.append("journal: what was left unsettled")
        if not change.dry_run:
            # Whoever opens a store for writing settles what another left.
            with writing(call, reason=change.reason):
                pass
    if found.get("permissions") == WARN and scheme in _PATH_SCHEMES:
        done.append("permissions: the rights of group and others")
        if not change.dry_run:
            close_to_others(place)
    return done


def close_to_others(place: str) -> None:
    """Take the rights of group and others away from a file, or from everything in a folder."""
    for path in files_below(place):
        # A file of a store in use may go at any moment, and links have no rights of their own.
        with suppress(FileNotFoundError):
            mode = os.lstat(path).st_mode
            if not stat.S_ISLNK(mode) and mode & _OTHERS:
                os.chmod(path, stat.S_IMODE(mode) & ~_OTHERS)
