"""When to try again, how long to wait before, and what is not worth trying."""

from __future__ import annotations

from dataclasses import field

from holdfast.domain.errors import (
    AtomicRenameFailedError,
    CheckpointError,
    ChecksumMismatchError,
    DiskFullError,
    PermissionDeniedError,
    UnsupportedVersionError,
)
from holdfast.domain.ladder import Climb
from holdfast.domain.value import value

#: How much of a pause jitter may take away.
_JITTER_SHARE = 0.5


@value
class RetryPolicy:
    """How often, and after which pauses, something that failed is tried again.

    Attributes:
        max_attempts: tries altogether, the first one included.
        base_delay_ms: pause before the second try.
        max_delay_ms: no pause is longer.
        exponential_base: how much longer each pause is than the one before.
        jitter: pauses are shortened at random, so that many who failed together do not return together.
        retryable_errors: what may pass.
        non_retryable_errors: what never does; these go first.
    """

    max_attempts: int = 3
    base_delay_ms: int = 100
    max_delay_ms: int = 5000
    exponential_base: float = 2.0
    jitter: bool = True
    retryable_errors: tuple[type[CheckpointError], ...] = (DiskFullError, AtomicRenameFailedError)
    non_retryable_errors: tuple[type[CheckpointError], ...] = (
        PermissionDeniedError,
        ChecksumMismatchError,
        UnsupportedVersionError,
    )

    def is_retryable(self, error: BaseException) -> bool:
        """Tell whether an error may pass by itself, or with a little help."""
        if isinstance(error, self.non_retryable_errors):
            return False
        return isinstance(error, self.retryable_errors)

    def should_retry(self, error: BaseException, attempts: int) -> bool:
        """Tell whether to try again after so many tries, the last of which ended with this error."""
        return attempts < self.max_attempts and self.is_retryable(error)

    def delay_seconds(self, attempts: int, random: float = 1.0) -> float:
        """Give the pause after so many tries.

        Args:
            attempts: tries so far, one at least.
            random: a number from 0 to 1 that jitter is made of; 1 is the whole pause.
        """
        # Grows past every bound long before it overflows: the exponent is cut first.
        exponent = min(max(attempts, 1) - 1, 64)
        whole_ms = min(self.base_delay_ms * self.exponential_base**exponent, self.max_delay_ms)
        kept = 1 - _JITTER_SHARE * (1 - random) if self.jitter else 1.0
        return whole_ms * kept / 1000


@value
class FaultSettings:
    """What to do when nothing can be made durable.

    Attributes:
        is_degrading: go on without durability, and say so; else the caller gets the error.
        retry: what is tried before that.
        memory_bytes: how much may be kept in memory until it can be written.
        emergency_path: folder of a second store for when memory does not suffice; None: beside the system's
            temporary files.
        climb: how trust in the store is regained.
    """

    is_degrading: bool = False
    retry: RetryPolicy = RetryPolicy()
    memory_bytes: int = 64 * 1024 * 1024
    emergency_path: str | None = None
    climb: Climb = field(default_factory=Climb)
