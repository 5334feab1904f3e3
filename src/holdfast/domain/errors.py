"""Everything that can go wrong, as one tree.

CheckpointError
|-- CheckpointWriteError
|   |-- DiskFullError
|   |-- PermissionDeniedError
|   |-- AtomicRenameFailedError
|   |-- ResultLostError
|   |-- CheckpointConflictError
|   |   |-- LeaseHeldError
|   |   `-- LeaseLostError
|   |-- StateTooLargeError
|   |-- UnsupportedTypeError
|   |-- UnstorableValueError
|   |-- StoreReadOnlyError
|   `-- StoreClosedError
|-- CheckpointReadError
|   |-- CheckpointNotFoundError
|   |-- CheckpointCorruptError
|   |   |-- ChecksumMismatchError
|   |   |-- SealBrokenError
|   |   `-- CheckpointQuarantinedError
|   |-- KeyDestroyedError
|   |-- StoreNotFoundError
|   `-- StoreLockedError
|-- CheckpointRecoveryError
|   |-- NoValidCheckpointError
|   |-- EventReplayFailedError
|   |-- StateReconstructionError
|   `-- HandlerNotFoundError
|-- CheckpointSchemaError
|   |-- UnsupportedVersionError
|   `-- MigrationFailedError
|-- RunError
|   |-- DeclarationError (also a ValueError)
|   |-- GraphChangedError
|   |-- AgentFailedError
|   |-- AttemptOverError
|   `-- EffectUnknownError
|-- LegalHoldError
|-- KeyUnavailableError
|-- InvalidStateError
|-- InvalidIdError (also a ValueError)
`-- ConfigError (also a ValueError)

Warnings, for what does not stop the work: StoreDamageWarning, StateSizeWarning, PromiseBrokenWarning,
RedactedStateWarning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar


class CheckpointError(Exception):
    """Say what went wrong, where, and what to do about it.

    Attributes:
        code: stable name of the kind of error, for programs.
        message: what went wrong.
        place: where: a path in the state, a checkpoint, a file. May be empty.
        hint: what to do. May be empty.
    """

    code: ClassVar[str] = "checkpoint_error"

    def __init__(self, message: str, *, place: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.hint = hint

    def __str__(self) -> str:
        where = f"{self.message}: {self.place}" if self.place else self.message
        return f"{where.rstrip('.')}. {self.hint}" if self.hint else where


def recovery_hint(workflow_id: str = "WORKFLOW") -> str:
    """Say where to look after damage; where a workflow is known, what is said can be typed as it stands."""
    return f"Run `holdfast recover {workflow_id} --plan` to see what can be brought back."


class CheckpointWriteError(CheckpointError):
    """Something could not be made durable, or it is unknown whether it was."""

    code = "checkpoint_write_failed"


class DiskFullError(CheckpointWriteError):
    """No space, quota or file size limit left where the store lives."""

    code = "disk_full"


class PermissionDeniedError(CheckpointWriteError):
    """The operating system or the database refuses access."""

    code = "permission_denied"


class AtomicRenameFailedError(CheckpointWriteError):
    """A finished file could not be moved into its place."""

    code = "atomic_rename_failed"


class ResultLostError(CheckpointWriteError):
    """A run came to its end, and what it recorded is neither in the store nor kept elsewhere.

    Attributes:
        result: what the run would have answered; only the program that catches this has it.
    """

    code = "result_lost"

    def __init__(self, message: str, *, place: str = "", hint: str = "", result: Any = None) -> None:
        super().__init__(message, place=place, hint=hint)
        self.result = result


class CheckpointConflictError(CheckpointWriteError):
    """Somebody else committed to the same workflow first."""

    code = "checkpoint_conflict"


class LeaseHeldError(CheckpointConflictError):
    """Another owner has the workflow for itself at the moment."""

    code = "lease_held"


class LeaseLostError(CheckpointConflictError):
    """The lease shown is not the workflow's any more: it was released, or another owner took over."""

    code = "lease_lost"


class StateTooLargeError(CheckpointWriteError):
    """The state exceeds the configured limit."""

    code = "state_too_large"


class UnsupportedTypeError(CheckpointWriteError):
    """A value has a type nobody registered; `place` is the path to it."""

    code = "unsupported_type"


class UnstorableValueError(CheckpointWriteError):
    """A value of a known type cannot be stored: it contains itself, or is nested too deep."""

    code = "unstorable_value"


class StoreReadOnlyError(CheckpointWriteError):
    """The store was opened for reading."""

    code = "store_read_only"


class StoreClosedError(CheckpointWriteError):
    """The store was closed before."""

    code = "store_closed"


class CheckpointReadError(CheckpointError):
    """Something stored could not be read."""

    code = "checkpoint_read_failed"


class CheckpointNotFoundError(CheckpointReadError):
    """There is no such checkpoint."""

    code = "checkpoint_not_found"


class CheckpointCorruptError(CheckpointReadError):
    """Stored bytes are not what Holdfast writes."""

    code = "checkpoint_corrupt"


class ChecksumMismatchError(CheckpointCorruptError):
    """Stored bytes are not the bytes that were committed."""

    code = "checksum_mismatch"


class SealBrokenError(CheckpointCorruptError):
    """Bytes of an encrypted store were not sealed with its keys for the place they stand in."""

    code = "seal_broken"


class CheckpointQuarantinedError(CheckpointCorruptError):
    """The checkpoint was found damaged and set aside; it is not used until it is released."""

    code = "checkpoint_quarantined"


class KeyDestroyedError(CheckpointReadError):
    """What is asked for was erased: the key that it was encrypted with is gone for good."""

    code = "key_destroyed"


class StoreNotFoundError(CheckpointReadError):
    """There is no store at the given place."""

    code = "store_not_found"


class StoreLockedError(CheckpointReadError):
    """Another process holds the store."""

    code = "store_locked"


class CheckpointRecoveryError(CheckpointError):
    """A workflow could not be brought back."""

    code = "recovery_failed"


class NoValidCheckpointError(CheckpointRecoveryError):
    """No checkpoint of the workflow verifies."""

    code = "no_valid_checkpoint"


class EventReplayFailedError(CheckpointRecoveryError):
    """Events after the checkpoint could not be applied."""

    code = "event_replay_failed"


class StateReconstructionError(CheckpointRecoveryError):
    """Stored operations do not fit the state they should change."""

    code = "state_reconstruction_failed"


class HandlerNotFoundError(CheckpointRecoveryError):
    """Nobody registered the handler that should resume the workflow."""

    code = "handler_not_found"


class CheckpointSchemaError(CheckpointError):
    """A stored state has a shape this program does not handle."""

    code = "schema_error"


class UnsupportedVersionError(CheckpointSchemaError):
    """The format or schema version is unknown here."""

    code = "unsupported_version"


class MigrationFailedError(CheckpointSchemaError):
    """A migration between two schema versions raised."""

    code = "migration_failed"


class RunError(CheckpointError):
    """A workflow could not be run to its end."""

    code = "run_failed"


class DeclarationError(RunError, ValueError):
    """A workflow is declared in a way that cannot be run."""

    code = "invalid_declaration"


class GraphChangedError(RunError):
    """The workflow is not the one that was begun, and the caller asked for the same."""

    code = "graph_changed"


class AgentFailedError(RunError):
    """An agent failed for good."""

    code = "agent_failed"


class AttemptOverError(RunError):
    """An agent went on after its attempt was given up."""

    code = "attempt_over"


class EffectUnknownError(RunError):
    """Whether something outside was changed before a crash is not known, and somebody has to say."""

    code = "effect_unknown"


class KeyUnavailableError(CheckpointError):
    """The store is encrypted, and the key that opens it is not at hand."""

    code = "key_unavailable"


class LegalHoldError(CheckpointError):
    """What should go has to stay: a legal hold covers it."""

    code = "legal_hold"


class InvalidStateError(CheckpointError):
    """A state, status or transition is not a legal one."""

    code = "invalid_state"


class InvalidIdError(CheckpointError, ValueError):
    """A text cannot be the id or reference it was given as."""

    code = "invalid_id"


class ConfigError(CheckpointError, ValueError):
    """A setting has a value it cannot have."""

    code = "invalid_config"


#: What makes one checkpoint unusable, and says nothing about those before it.
UNUSABLE = (CheckpointCorruptError, CheckpointNotFoundError, StateReconstructionError)


class StoreDamageWarning(UserWarning):
    """Damage was found and worked around."""


class EventsSkippedWarning(UserWarning):
    """Events could not be replayed, and the state is without them."""


class StateSizeWarning(UserWarning):
    """A state has grown towards its limit."""


class PromiseBrokenWarning(UserWarning):
    """A field declared append-only was changed in another way."""


class RedactedStateWarning(UserWarning):
    """A restored state lacks secrets that were never stored.

    Attributes:
        pointers: where a placeholder stands in place of one, as JSON pointers.
    """

    def __init__(self, message: str, pointers: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.pointers = pointers


def all_codes() -> dict[str, type[CheckpointError]]:
    """Map every stable code to its class."""
    return {kind.code: kind for kind in _family(CheckpointError)}


def _family(kind: type[CheckpointError]) -> Iterator[type[CheckpointError]]:
    """Yield a class and its descendants in this module; an application's own would only repeat codes."""
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == __name__:
            yield from _family(child)
