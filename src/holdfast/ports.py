"""Every outbound port on one page. The docstrings are the contract; `conformance` checks it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from holdfast.domain.audit_entry import AuditEntry, TrailHead
    from holdfast.domain.note import VerifierKey
    from holdfast.domain.record import Commit, Entry, Head, Keyframe, KeyframeEntry, Lease, Removal
    from holdfast.domain.treehead import TreeHead


class Clock(Protocol):
    """Tells the time; the domain never asks the world."""

    def now(self) -> datetime:
        """Now, aware, in UTC."""


class IdSource(Protocol):
    """Makes identifiers."""

    def new(self) -> str:
        """A fresh UUID in its canonical text form."""


class Packer(Protocol):
    """The exact, fast encoder that change detection compares by."""

    def pack(self, value: Any) -> bytes:
        """Encode any supported Python value. Equal bytes mean the same value of the same type.

        A tree wrapped in `Plain` is taken as it is. Raises UnsupportedTypeError naming the path to a
        value nobody registered.
        """

    def pack_plain(self, plain: Any) -> bytes:
        """Encode a plain tree, whose tagged objects are tags already: the inverse of `unpack`."""

    def unpack(self, data: bytes) -> Any:
        """Decode to a plain tree: tags stay tagged objects, bytes and non-finite floats are native."""


class Codec(Protocol):
    """How a payload looks on disk."""

    @property
    def name(self) -> str:
        """json, msgpack or cbor; also the file name's ending."""

    def encode(self, plain: Any) -> bytes:
        """Encode a plain tree. Deterministic."""

    def decode(self, data: bytes) -> Any:
        """Decode to a plain tree. Never builds anything but plain data."""


class Encoded(Protocol):
    """An encoded and perhaps compressed payload, and how to read it again."""

    @property
    def encoding(self) -> str:
        """json, msgpack or cbor."""

    @property
    def compression(self) -> str:
        """none, zstd or gzip."""

    @property
    def data(self) -> bytes:
        """The payload."""

    @property
    def raw(self) -> bytes:
        """What it was before compression."""


class Formats(Protocol):
    """Every way a payload can look on disk: writes one of them, reads all."""

    @property
    def encoding(self) -> str:
        """What payloads are written as: json, msgpack or cbor."""

    def compressed(self, parts: Sequence[bytes]) -> tuple[str, bytes] | None:
        """Compress encoded bytes as configured; answer with what, or None if they stay as they are."""

    def encode(self, plain: Any) -> Encoded:
        """Encode a plain tree as configured, compressed above the threshold. Deterministic."""

    def decode(self, encoding: str, compression: str, data: bytes, raw_bytes: int) -> Any:
        """Decode to a plain tree. Raises CheckpointCorruptError, also for more than `raw_bytes`."""


class Signer(Protocol):
    """A private key that signs tree heads under its name."""

    @property
    def key(self) -> VerifierKey:
        """The public half, with the name of the log."""

    def sign(self, message: bytes) -> bytes:
        """Sign a message."""


class Signing(Protocol):
    """Where keys that sign tree heads are kept, and how their signatures are checked."""

    def signer(self, origin: str, *, create: bool = False) -> Signer | None:
        """The key of a log; None if there is none here. With `create` one is made where there is none."""

    def remembered(self, origin: str) -> bytes | None:
        """The last head that the key here signed, kept beside it and not in the store; None if none was."""

    def remember(self, origin: str, head: bytes) -> None:
        """Keep a head as the last that was signed, durably, before it goes anywhere else."""

    def verify(self, public_key: bytes, message: bytes, signature: bytes) -> bool:
        """Tell whether a signature of a message is by a public key; nothing given makes this raise."""


class SecretKey(Protocol):
    """One key of an authenticated cipher, ready to use."""

    def seal(self, plaintext: bytes, associated: bytes, nonce: bytes | None = None) -> bytes:
        """Encrypt; answers the nonce, the ciphertext and its tag in one.

        Without a nonce a random one is taken. One that is given must belong to this plaintext alone.
        """

    def open(self, sealed: bytes, associated: bytes) -> bytes | None:
        """Decrypt; None if it was not sealed with this key and just these associated bytes."""


class Cipher(Protocol):
    """An authenticated cipher whose nonces are long enough to be drawn at random without counting."""

    @property
    def name(self) -> str:
        """What stored bytes call it."""

    @property
    def nonce_bytes(self) -> int:
        """Length of a nonce."""

    @property
    def overhead_bytes(self) -> int:
        """How much longer than its plaintext is what is sealed."""

    def key(self, material: bytes) -> SecretKey:
        """Make 32 secret bytes ready to use."""


class KeySource(Protocol):
    """Where the key that wraps all others comes from: a file, the environment, a command."""

    @property
    def name(self) -> str:
        """How people call it; holds no secret."""

    def fetch(self) -> bytes:
        """The 32 bytes. Raises KeyUnavailableError; nothing of the key is in the message."""


class WitnessMemory(Protocol):
    """What a witness remembers: of each log the last head that it signed, and nothing older."""

    def alone(self) -> AbstractContextManager[None]:
        """Keep everybody else out, other processes too, from the question for the last head to the answer."""

    def last(self, origin: str) -> TreeHead | None:
        """The last head of a log that was kept; None if there never was one.

        Raises CheckpointCorruptError if it cannot be told: a witness that forgot must not sign.
        """

    def keep(self, head: TreeHead) -> None:
        """Put a head in the place of the log's last one, durably.

        Raises CheckpointWriteError if it is not known to be durable: then nothing may be signed.
        """


class ProgressPlace(Protocol):
    """Where people find the progress reports of workflows, one text each. Nobody may count on them.

    Raises CheckpointWriteError where something cannot be written or taken away; what cannot be read is not
    there.
    """

    def append(self, workflow_id: str, head: str, text: str) -> None:
        """Add to the end of a report; a new one begins with its head."""

    def replace(self, workflow_id: str, text: str) -> None:
        """Put a whole report in the place of what is there: whoever reads finds the one or the other."""

    def remove(self, workflow_id: str) -> None:
        """Take a report away, if there is one."""

    def read(self, workflow_id: str) -> str | None:
        """The report; None if there is none."""

    def has(self, workflow_id: str) -> bool:
        """Whether there is one."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a store check saw: where, what, and whether acknowledged data is harmed."""

    place: str
    problem: str
    harm: bool = True


class Store(Protocol):
    """Where committed bytes live. Methods are safe to call from several threads.

    Reads see every commit that any process has been told is durable, and may see later ones.
    A store raises CheckpointError subclasses only; driver errors are translated inside.
    """

    @property
    def url(self) -> str:
        """Where this store is, without secrets."""

    @property
    def read_only(self) -> bool:
        """True if this opening can never write."""

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        """Make all of the commits durable with one sync; answer one outcome each, in order.

        Whoever records anything new records at least one event: the event's sequence is what two
        writers race for. Only a copy may bring a checkpoint without any, where its events were removed.
        None: durable. CheckpointConflictError: the expected head was not the head (earlier commits of
        the same call count), nothing of that commit was kept, the others were.
        LeaseLostError: the token is not that of the workflow's last lease, or that one was released.
        LeaseHeldError: no token, and a lease of the workflow is live. If durability failed or is
        unknown, raises CheckpointWriteError and none may be counted on.

        Audit entries become lines of their sessions' trails by `domain.trail.chain`, on top of what the
        trails hold at that moment: two writers of one session never conflict. What a line cannot hold is
        the commit's outcome, InvalidStateError or UnstorableValueError.
        """

    def head(self, workflow_id: str) -> Head:
        """The last checkpoint and event of a workflow; `Head()` where there is none."""

    def workflows(self) -> Iterator[str]:
        """Ids of all workflows, in no particular order."""

    def entries(self, workflow_id: str, *, newest_first: bool = False) -> Iterator[Entry]:
        """Checkpoints of a workflow by sequence, tombstones included, status as of now."""

    def find(self, uuid_prefix: str) -> list[tuple[str, Entry]]:
        """Checkpoints whose UUID starts so, with their workflow id."""

    def records(self, workflow_id: str, first: int, last: int) -> Iterator[bytes]:
        """Bytes of the records first..last, in order; those whose group was dropped are left out.

        A pruned checkpoint's record stays readable while its group is there: the checkpoints after it
        are changes on top of it. Raises CheckpointNotFoundError if the record of `first` or `last` is
        not stored, CheckpointCorruptError if bytes cannot be located. The caller verifies checksums.
        """

    def keyframes(self, workflow_id: str) -> list[KeyframeEntry]:
        """Keyframes of a workflow by sequence."""

    def newest_keyframe(self, workflow_id: str, through: int) -> KeyframeEntry | None:
        """Answer the last keyframe up to a sequence, without reading the others; None if there is none."""

    def keyframe(self, workflow_id: str, sequence: int) -> bytes:
        """Bytes of one keyframe, checked against its committed SHA-256.

        Raises CheckpointNotFoundError, or ChecksumMismatchError if the bytes are not what was committed.
        """

    def put_keyframe(self, workflow_id: str, keyframe: Keyframe) -> None:
        """Store a derived keyframe durably. Idempotent. Called off the commit path.

        One that is stored already stays as it is while its bytes are what was committed. Where they are not,
        or are gone, the new one takes its place, its sum included: after a crash it is the one or the other.
        """

    def events(self, workflow_id: str, *, after: int = 0) -> Iterator[bytes]:
        """Event lines with a sequence above `after`, in order."""

    def has_blob(self, sha256: str) -> bool:
        """Whether a blob is stored (it may go again until a commit that `needs` it succeeds)."""

    def blob(self, sha256: str) -> bytes:
        """A blob's bytes, checked against its name.

        Raises CheckpointNotFoundError, or ChecksumMismatchError if the bytes are not what was committed.
        """

    def evidence(self, workflow_id: str, sequence: int) -> Iterator[tuple[str, bytes]]:
        """Everything stored of one checkpoint as it is, checked by nobody: never to be returned as a state.

        Named `record`, `keyframe` and `blob-` with a SHA-256, in this order. What is not there, or cannot be
        read, is left out; of what is cut short there is the rest.
        """

    def remove(self, workflow_id: str, removal: Removal) -> int:
        """Tombstone checkpoints, drop groups, old events and unused blobs; answer the bytes given back.

        Durable and atomic, audit entries included: after a crash either all of it is visible or none.
        """

    def trail_head(self, session_id: str) -> TrailHead:
        """Where the trail of a session stands; `TrailHead(session_id)` where there is none."""

    def sessions(self) -> Iterator[str]:
        """Ids of all sessions that have a trail, in no particular order."""

    def trail(self, session_id: str, *, after: int = 0) -> Iterator[bytes]:
        """Lines of a session's trail with a sequence above `after`, in order."""

    def payload(self, session_id: str, seq: int) -> bytes | None:
        """The payload of an audit entry as stored; None if it has none, or that was erased."""

    def integrate(self) -> int:
        """Give every entry committed up to now its place in the store's tree; answer the tree's size.

        A place is never given twice and never changed; entries of one session keep their order.
        """

    def leaves(self, *, after: int = 0) -> Iterator[bytes]:
        """Lines of all sessions in the order of the tree, from the one at index `after` on."""

    def waiting(self) -> Iterator[bytes]:
        """Lines that are committed and have no place in the tree yet, those of a session in order."""

    def place(self, session_id: str, seq: int) -> int | None:
        """Index in the tree of an entry; None if it has none yet."""

    def file(self, name: str) -> bytes | None:
        """A small file of the store itself, as a commit left it: a tile, a signed head, a wrapped key.

        Names are paths of lower-case words, digits and `.-_`, at most 200 characters: `audit/log/tile/0/000`.
        """

    def files(self, prefix: str) -> Iterator[str]:
        """Names of the store's own files that start so, in order."""

    def acquire(
        self, workflow_id: str, owner: str, ttl_seconds: float, audit: Sequence[AuditEntry] = ()
    ) -> Lease:
        """Take a workflow for an owner, durably, with a token above all before it, and tell so in the trail.

        An owner may take over from itself: its earlier lease is fenced off. One that has expired may be
        taken by anybody. Raises LeaseHeldError while another's is live.
        """

    def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
        """Give a lease new time from now on, also if it has expired and nobody took it since.

        Raises LeaseLostError if it was released or another was granted.
        """

    def release(self, lease: Lease, audit: Sequence[AuditEntry] = ()) -> None:
        """Give a workflow up; its token is worth nothing from now on. A lost lease is left as it is.

        Only what was given up is told in the trail.
        """

    def lease(self, workflow_id: str) -> Lease | None:
        """The last lease granted and not released, expired or not."""

    def check(self) -> Iterator[Finding]:
        """Look at everything the store keeps about itself; nothing yielded means nothing found."""

    def stats(self) -> dict[str, Any]:
        """Counts and bytes, by kind, for people."""

    def settle(self) -> None:
        """Finish background work: after this, plain files (or tables) hold everything."""

    def close(self) -> None:
        """Settle if possible and let go of every resource. Idempotent."""


@runtime_checkable
class Sweepable(Protocol):
    """A store that killed writers may leave something in, of which `check` tells."""

    def sweep(self) -> int:
        """Take away what belongs to no commit and to no living writer; answer the bytes given back."""
