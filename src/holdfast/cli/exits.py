"""Exit codes, and which error ends with which. Stable: scripts rely on them; new ones may be added."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class Exit(IntEnum):
    """What the command line tells its caller at the end."""

    DONE = 0
    UNEXPECTED = 1
    USAGE = 2
    PARTIAL = 3
    NOT_FOUND = 4
    DIFFERENT = 5
    DIVERGED = 6
    RUN_FAILED = 7
    WAITING = 8
    PAUSED = 9
    NO_STORE = 10
    LOCKED = 11
    NO_KEY = 12
    UNREACHABLE = 13
    CANCELLED = 14
    CORRUPT = 20
    NOT_VERIFIED = 21
    INCONCLUSIVE = 22
    NOTHING_VALID = 30
    REFUSED = 31
    OLDER = 32
    OTHER_FORMAT = 40
    INTERRUPTED = 130
    PIPE_CLOSED = 141
    TERMINATED = 143


#: By the stable code of an error.
EXIT_OF_ERROR: Mapping[str, Exit] = {
    "checkpoint_error": Exit.UNEXPECTED,
    "checkpoint_write_failed": Exit.UNEXPECTED,
    "disk_full": Exit.UNEXPECTED,
    "permission_denied": Exit.UNREACHABLE,
    "atomic_rename_failed": Exit.UNEXPECTED,
    "result_lost": Exit.UNEXPECTED,
    # Somebody else writes at this moment: the remedy is that of a lock, to try again.
    "checkpoint_conflict": Exit.LOCKED,
    "lease_held": Exit.LOCKED,
    "lease_lost": Exit.LOCKED,
    "state_too_large": Exit.UNEXPECTED,
    "unsupported_type": Exit.UNEXPECTED,
    "unstorable_value": Exit.UNEXPECTED,
    "store_read_only": Exit.UNREACHABLE,
    "store_closed": Exit.UNEXPECTED,
    "checkpoint_read_failed": Exit.UNREACHABLE,
    "checkpoint_not_found": Exit.NOT_FOUND,
    "checkpoint_corrupt": Exit.CORRUPT,
    "checksum_mismatch": Exit.CORRUPT,
    "seal_broken": Exit.CORRUPT,
    "checkpoint_quarantined": Exit.CORRUPT,
    "key_destroyed": Exit.NOT_FOUND,
    "store_not_found": Exit.NO_STORE,
    "store_locked": Exit.LOCKED,
    "recovery_failed": Exit.UNEXPECTED,
    "no_valid_checkpoint": Exit.NOTHING_VALID,
    "event_replay_failed": Exit.UNEXPECTED,
    "state_reconstruction_failed": Exit.CORRUPT,
    "handler_not_found": Exit.NOT_FOUND,
    "schema_error": Exit.OTHER_FORMAT,
    "unsupported_version": Exit.OTHER_FORMAT,
    "migration_failed": Exit.OTHER_FORMAT,
    "run_failed": Exit.RUN_FAILED,
    "invalid_declaration": Exit.USAGE,
    "graph_changed": Exit.REFUSED,
    "agent_failed": Exit.RUN_FAILED,
    "attempt_over": Exit.UNEXPECTED,
    "effect_unknown": Exit.REFUSED,
    "legal_hold": Exit.REFUSED,
    "key_unavailable": Exit.NO_KEY,
    "invalid_state": Exit.UNEXPECTED,
    "invalid_id": Exit.USAGE,
    "invalid_config": Exit.USAGE,
}


def exit_of(code: str) -> Exit:
    """Name the exit of an error by its code; one that is not known here is unexpected."""
    return EXIT_OF_ERROR.get(code, Exit.UNEXPECTED)


def was_interrupted(error: BaseException) -> bool:
    """Tell whether an interrupt is what an error came of."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, KeyboardInterrupt):
            return True
        seen.add(id(cause))
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return False


class Failure(Exception):
    """End a command with an exit code and a reason that no error of the library stands for."""

    def __init__(self, code: str, leave: Exit, message: str, *, place: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.leave = leave
        self.message = message
        self.place = place
        self.hint = hint
