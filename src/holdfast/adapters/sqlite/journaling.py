"""Which journal SQLite keeps: a write-ahead log where that is safe, else a rollback journal.

From SQLite 3.7.0 on, two connections could lose pages for good when one wrote just while another reset the
write-ahead log. The releases named here mended that; before them the log is not used for writing.
"""

from __future__ import annotations

from holdfast.domain.errors import ConfigError
from holdfast.domain.value import value

WAL, ROLLBACK = "wal", "rollback"

#: What SQLite calls each mode. A rollback journal that is kept, its header overwritten, was measured the
#: fastest: no file is created, cut or deleted on the way of a commit.
PRAGMAS = {WAL: "wal", ROLLBACK: "persist"}

#: First mended release of each line, and the line from which on all are. 3.52.0 was withdrawn.
_MENDED = ((3, 44, 6), (3, 50, 7), (3, 51, 3))
_SOUND = (3, 53, 0)


@value
class JournalChoice:
    """A journal, and why this one."""

    mode: str
    reason: str

    @property
    def pragma(self) -> str:
        """What SQLite calls it."""
        return PRAGMAS[self.mode]


def choose(version: tuple[int, ...], asked: str | None = None) -> JournalChoice:
    """Choose the journal for a version of SQLite, unless one was asked for.

    Raises:
        ConfigError: there is no such journal.
    """
    said = f"SQLite {'.'.join(map(str, version))}"
    if asked is not None:
        if asked not in PRAGMAS:
            raise ConfigError(
                f"there is no journal mode {asked!r}", hint=f"Known are: {', '.join(sorted(PRAGMAS))}."
            )
        return JournalChoice(asked, "it was asked for")
    if is_wal_safe(version):
        return JournalChoice(WAL, f"{said} is without the WAL-reset bug")
    return JournalChoice(
        ROLLBACK, f"{said} has the WAL-reset bug; `pip install holdfast[sqlite]` brings one without it"
    )


def is_wal_safe(version: tuple[int, ...]) -> bool:
    """Tell whether a version of SQLite resets its write-ahead log correctly."""
    mended = any(version[:2] == line[:2] and version >= line for line in _MENDED)
    return mended or version >= _SOUND
