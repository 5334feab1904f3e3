"""What every use case works with: the store, the outside world and the settings, in one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

from holdfast.application.app import App
from holdfast.application.base import CACHE_BYTES
from holdfast.domain.lift import LIFT_THRESHOLD_BYTES
from holdfast.domain.recovery import RecoverySettings
from holdfast.domain.retention import RetentionPolicy
from holdfast.domain.retry import FaultSettings
from holdfast.domain.value import value

if TYPE_CHECKING:
    from holdfast.application.redaction.redacting import StoreRedactor
    from holdfast.application.revealing import Resolver
    from holdfast.application.secrecy.sealing import Vault
    from holdfast.domain.plain import TypeRegistry
    from holdfast.domain.telemetry import Observer, Tracing
    from holdfast.ports import Clock, Formats, IdSource, Packer, ProgressPlace, Signing, Store

WARN_BYTES = 500 * 1024
LIMIT_BYTES = 100 * 1024 * 1024


@value
class Kit:
    """Collaborators, and the settings that the use cases look at."""

    store: Store
    packer: Packer
    formats: Formats
    registry: TypeRegistry
    clock: Clock
    ids: IdSource
    warn_bytes: int = WARN_BYTES
    limit_bytes: int = LIMIT_BYTES
    blob_threshold_bytes: int = LIFT_THRESHOLD_BYTES
    cache_bytes: int = CACHE_BYTES
    #: None: nothing is removed unless asked for.
    retention: RetentionPolicy | None = field(default_factory=RetentionPolicy)
    #: Keyframes and retention in a thread; else in the thread of the caller, after its commit.
    background: bool = True
    #: Whether decisions go with the next commit, and nobody waits for them.
    batch_decisions: bool = False
    #: Whether operations are told in the trail, and whether a read that cannot be is refused.
    audit: bool = True
    strict_audit: bool = False
    #: Payloads of the trail that are younger than this stay.
    audit_retain_days: int = 183
    #: A head is signed each time this many entries were told, where there is a key.
    head_interval: int = 1024
    #: Session of this opening, for what belongs to no other; who acts in it.
    session_id: str = "local"
    actor: str | None = None
    #: Whether closing the service ends the session; others may go on with it otherwise.
    end_session: bool = True
    #: Hides secrets before anything is written; None: nothing is hidden.
    redactor: StoreRedactor | None = None
    #: Fills in what was hidden when a state is restored.
    resolver: Resolver | None = None
    #: Seals everything that is written; None: the store is not encrypted.
    vault: Vault | None = None
    #: None: heads are never signed here, and signatures cannot be checked.
    signing: Signing | None = None
    #: What the program brings along for recovery.
    app: App = field(default_factory=App)
    #: How recovery behaves, and what to do when nothing can be made durable.
    recovery: RecoverySettings = field(default_factory=RecoverySettings)
    faults: FaultSettings = field(default_factory=FaultSettings)
    #: Opens the second store, for when neither this one nor memory has room; None: there is none.
    spare: Callable[[], Kit] | None = None
    #: Where progress reports are written; None: nowhere.
    progress: ProgressPlace | None = None
    #: Tells the size of the disk that the store is on, and what is free of it; None: nobody can.
    space: Callable[[], tuple[int, int] | None] | None = None
    #: Counts what happens, and makes spans of it; None: nobody does, and it costs nothing.
    observer: Observer | None = None
    tracing: Tracing | None = None
