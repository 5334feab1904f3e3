"""What `holdfast doctor --fix` mends: only what changes nothing that is stored."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.cli.machine import INFO, WARN, Check, files_below
from holdfast.cli.opening import session_name, writing

if TYPE_CHECKING:
    from holdfast.cli.changing import Change
    from holdfast.cli.group import Call

_OTHERS = 0o077
_PATH_SCHEMES = ("file", "sqlite")
#: How the place of what a killed writer left begins, in a finding.
LEFTOVERS = "leftovers: "


def mended(call: Call, url: str, checks: Sequence[Check], change: Change) -> list[str]:
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
    if any(check.detail.startswith(LEFTOVERS) for check in checks):
        done.append("leftovers: what killed writers left")
        if not change.dry_run:
            _sweep(call, change.reason)
    if found.get("permissions") == WARN and scheme in _PATH_SCHEMES:
        done.append("permissions: the rights of group and others")
        if not change.dry_run:
            close_to_others(place)
    return done


def _sweep(call: Call, reason: str | None) -> None:
    """Take away what killed writers left; what a living one is at stays."""
    from holdfast import bootstrap
    from holdfast.config import Config
    from holdfast.ports import Sweepable

    with writing(call, reason=reason):
        config = Config.load({"store": call.store, "session": session_name()})
        store = bootstrap.open_store(config, create=False)
        try:
            if isinstance(store, Sweepable):
                store.sweep()
        finally:
            store.close()


def close_to_others(place: str) -> None:
    """Take the rights of group and others away from a file, or from everything in a folder."""
    for path in files_below(place):
        # A file of a store in use may go at any moment, and links have no rights of their own.
        with suppress(FileNotFoundError):
            mode = os.lstat(path).st_mode
            if not stat.S_ISLNK(mode) and mode & _OTHERS:
                os.chmod(path, stat.S_IMODE(mode) & ~_OTHERS)
