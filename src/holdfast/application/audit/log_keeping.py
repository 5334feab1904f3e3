"""Keeping the log: its name, its tiles, the heads that are signed, and proofs for single entries.

Signed heads, cosignatures, public keys and the log's name are truth; tiles and `merkle_roots.json` are views.
A head is signed only if it grows out of the last one, checked against the entries as they are stored now.
The signature is told in the trail afterwards, in a session of its own: telling it in the session that was
just closed would begin that again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from holdfast.application.audit.log_name import LOG, ORIGIN_FILE, known_origin, signer_here
from holdfast.application.audit.log_tiles import LogTiles
from holdfast.application.kit import Kit
from holdfast.application.trailing import Facts, Trail
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointError,
    CheckpointNotFoundError,
    ChecksumMismatchError,
    ConfigError,
    InvalidStateError,
)
from holdfast.domain.json_reading import read_json
from holdfast.domain.merkle import consistency_proof, inclusion_proof, leaf_hash, verify_inclusion
from holdfast.domain.note import (
    Note,
    Signature,
    VerifierKey,
    Verify,
    parse_note,
    parse_vkey,
    verify_signatures,
)
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.domain.time import timestamp_text
from holdfast.domain.tlogproof import TlogProof
from holdfast.domain.trail import read_fields
from holdfast.domain.treehead import TreeHead, check_growth, open_head, parse_head, sign_head
from holdfast.domain.witness import AddCheckpoint
from holdfast.ports import Signer

VKEYS_FILE = LOG + "vkeys"
CHECKPOINT_FILE = LOG + "checkpoint"
ROOTS_FILE = LOG + "merkle_roots.json"
HEADS = LOG + "heads/"
#: Session that tells of heads.
HEADS_SESSION = "tree-heads"
#: What one signature adds to the log: its own entry, and once the beginning of that session.
TELLING_MAX = 2
#: The newest heads that `merkle_roots.json` lists; the file is replaced with each.
ROOTS_MAX = 1000

_ATTEMPTS_MAX = 100


class LogKeeper:
    """Keeps the log of one store. Safe to use from several threads and processes at once."""

    def __init__(self, kit: Kit, trail: Trail) -> None:
        self._kit = kit
        self._store = kit.store
        self._trail = trail
        self.tiles = LogTiles(kit.store)

    def origin(self) -> str:
        """Give the log's name, which its keys have, too; it is made when first asked for, once for ever."""
        for _ in range(_ATTEMPTS_MAX):
            known = self.known_origin()
            if known:
                return known
            name = f"holdfast/{self._kit.ids.new()}"
            self._commit({ORIGIN_FILE: f"{name}\n".encode()}, {ORIGIN_FILE: None})
        raise CheckpointConflictError("the log's name can neither be read nor made", place=ORIGIN_FILE)

    def known_origin(self) -> str:
        """Give the log's name; empty if it has none yet."""
        return known_origin(self._store)

    def update(self) -> int:
        """Give every entry its place and bring the tiles up to date; answer the size of the tree."""
        return self.tiles.grow()

    def anchor(self, *, create_key: bool = False) -> bytes | None:
        """Sign the tree as it is now, store the head and tell of it; answer the head.

        None, and nothing done, where there is no key. The last head is answered where nothing came after it
        but the telling of heads.

        Args:
            create_key: make a key if there is none.

        Raises:
            ChecksumMismatchError: the entries are not those that were signed before: never signed over.
        """
        signer = self._signer(create_key=create_key)
        if signer is None:
            return None
        for _ in range(_ATTEMPTS_MAX):
            head = self._anchor_once(signer)
            if head is not None:
                return head
        raise CheckpointConflictError("others keep signing heads of the log", place=CHECKPOINT_FILE)

    def heads(self) -> Iterator[bytes]:
        """Give all signed heads as they were given out, the smallest first, cosignatures included."""
        for name in self._store.files(HEADS):
            head = self._store.file(name)
            if head is not None:
                yield head

    def checkpoint(self) -> bytes | None:
        """Give the newest signed head; None if nothing was ever signed."""
        names = list(self._store.files(HEADS))
        return self._store.file(names[-1]) if names else None

    def keys(self) -> tuple[VerifierKey, ...]:
        """Give the public keys that the log says it signed with; believe them as much as the store."""
        # Split at newlines alone: other characters that end a line for Python do not belong there.
        *lines, rest = (self._store.file(VKEYS_FILE) or b"").decode("utf-8", "replace").split("\n")
        return tuple(parse_vkey(line) for line in [*lines, *([rest] if rest else [])])

    def own_key(self) -> VerifierKey | None:
        """Give the public half of the key that is kept here, outside the store; None if there is none."""
        origin = self.known_origin()
        signer = self._kit.signing.signer(origin) if origin and self._kit.signing else None
        return signer.key if signer else None

    def verify_signature(self) -> Verify:
        """Give what checks signatures.

        Raises:
            ConfigError: there is nothing that can.
        """
        if self._kit.signing is None:
            raise ConfigError(
                "signatures cannot be checked here", hint="Run `pip install 'holdfast[audit]'` and try again."
            )
        return self._kit.signing.verify

    def add_cosignature(self, note: bytes, keys: Sequence[VerifierKey] = ()) -> bytes:
        """Keep signatures of witnesses with the head they are for; answer that head.

        Args:
            note: the head with their signatures, or just the lines a witness answered for the newest head.
            keys: those of witnesses; where given, one of them must have signed.

        Raises:
            CheckpointCorruptError: it is no such note.
            CheckpointNotFoundError: it is for a head that this log never signed.
            ChecksumMismatchError: a signature is not right.
        """
        for _ in range(_ATTEMPTS_MAX):
            head, given, stored = self._cosigned(note)
            if keys and not verify_signatures(given, keys, self.verify_signature()):
                raise ChecksumMismatchError("no witness that is known signed the head")
            new = [line for line in given.signatures if line not in parse_note(stored).signatures]
            cosigned = stored + "".join(f"{line}\n" for line in new).encode()
            if not new or self._keep_cosigned(head, stored, cosigned, new):
                return cosigned
        raise CheckpointConflictError("others keep changing the head", place=CHECKPOINT_FILE)

    def proof(self, session_id: str, seq: int) -> TlogProof:
        """Prove that an entry is in the log; a head is signed for it if that can be done here.

        Raises:
            CheckpointNotFoundError: there is no such entry, or no signed head covers it.
            ChecksumMismatchError: what is stored does not prove it.
        """
        line = next(self._store.trail(session_id, after=seq - 1), None) if seq > 0 else None
        if line is None:
            raise CheckpointNotFoundError("there is no such audit entry", place=f"{session_id}, entry {seq}")
        self.update()
        index = self._store.place(session_id, seq)
        head = self.checkpoint()
        if index is None or head is None or _head_of(head).size <= index:
            head = self.anchor()
        if head is None or index is None or _head_of(head).size <= index:
            raise CheckpointNotFoundError(
                "no signed head covers the entry yet",
                place=f"{session_id}, entry {seq}",
                hint="Run `holdfast audit anchor` where the log's key is.",
            )
        return self._proof(index, leaf_hash(line), head)

    def add_checkpoint_request(self, old_size: int) -> bytes:
        """Write what a witness is asked to sign: the newest head, and the proof from what it saw last.

        Raises:
            CheckpointNotFoundError: nothing was signed yet.
            InvalidStateError: the witness saw more than there is.
        """
        checkpoint = self.checkpoint()
        if checkpoint is None:
            raise CheckpointNotFoundError("the log has no signed head", hint="Run `holdfast audit anchor`.")
        size = _head_of(checkpoint).size
        if old_size > size:
            raise InvalidStateError(f"the witness saw {old_size} entries, and {size} are signed")
        proof = consistency_proof(old_size, size, self.tiles.hashes(size)) if old_size else ()
        return AddCheckpoint(old_size, proof, checkpoint).encode()

    def _signer(self, *, create_key: bool) -> Signer | None:
        if not create_key:
            return signer_here(self._kit)
        signing = self._kit.signing
        if signing is None or self._store.read_only:
            self.verify_signature()
            return None
        origin = self.origin()
        if (signer := signing.signer(origin)) is not None:
            return signer
        made = signing.signer(origin, create=True)
        if made is not None:
            self._trail.record(*self._told(AuditType.KEY_CREATED, {"key": made.key.id.hex()}))
        return made

    def _anchor_once(self, signer: Signer) -> bytes | None:
        """Sign once; None if somebody else did at the same time."""
        # Read before the tree, so that the tree is at least as large.
        last = self.checkpoint()
        stored = self._store.file(CHECKPOINT_FILE)
        known = self._remembered(signer)
        size = self.update()
        old = TreeHead(signer.key.name, 0, b"") if last is None else self._opened(last, signer)
        if last is not None and known.size <= old.size and self._is_covered(old.size, size):
            return last
        try:
            self._grown(known, size)
            head = self._grown(old, size)
        except CheckpointConflictError:
            return None
        note = sign_head(head, signer.key, signer.sign)
        self._remember(known, head, note)
        files, expected = self._head_files(head, note, signer.key), {CHECKPOINT_FILE: stored}
        facts: Facts = {"size": size, "root": head.root.hex(), "key": signer.key.id.hex()}
        return note if self._commit(files, expected, self._told(AuditType.HEAD_SIGNED, facts)) else None

    def _remembered(self, signer: Signer) -> TreeHead:
        """Read the last head that the key signed, which nobody who writes the store can take away."""
        origin = signer.key.name
        note = self._kit.signing.remembered(origin) if self._kit.signing else None
        if note is None:
            return TreeHead(origin, 0, b"")
        return open_head(note, [signer.key], self.verify_signature())[0]

    def _remember(self, known: TreeHead, head: TreeHead, note: bytes) -> None:
        if self._kit.signing is not None and head.size > known.size:
            self._kit.signing.remember(head.origin, note)

    def _opened(self, note: bytes, signer: Signer) -> TreeHead:
        """Read the last head; one that was not signed by a key of this log is not gone on from."""
        return open_head(note, [*self.keys(), signer.key], self.verify_signature())[0]

    def _is_covered(self, signed: int, size: int) -> bool:
        """Tell whether nothing came after a head but the telling of heads."""
        if size - signed > TELLING_MAX:
            return False
        lines = islice(self._store.leaves(after=signed), size - signed)
        return all(read_fields(line)["session"] == HEADS_SESSION for line in lines)

    def _grown(self, old: TreeHead, size: int) -> TreeHead:
        """Make the head of a size after checking that it grew out of the last one."""
        try:
            return self._checked(old, size)
        except CheckpointError:
            # It may be the tiles that are damaged: the entries decide.
            self._check_overtaken(size)
            self.tiles.rebuild()
        try:
            return self._checked(old, size)
        except CheckpointError as fault:
            self._check_overtaken(size)
            facts = {"size": size, "signed_size": old.size}
            entries = self._told(AuditType.INTEGRITY_FAILED, facts, Outcome.FAILURE)
            self._commit({}, {}, entries)
            raise ChecksumMismatchError(
                f"no head is signed: the log is not what was signed before ({fault.message})",
                place=f"head of size {old.size}",
                hint="Run `holdfast audit verify` to see from where on.",
            ) from fault

    def _check_overtaken(self, size: int) -> None:
        """Begin again if the tree grew meanwhile: the edge of the smaller one is no longer stored."""
        if self.tiles.size() != size:
            raise CheckpointConflictError("the log grew meanwhile", place=CHECKPOINT_FILE, hint="Try again.")

    def _checked(self, old: TreeHead, size: int) -> TreeHead:
        hashes = self.tiles.hashes(size)
        head = TreeHead(old.origin, size, self.tiles.root(size))
        check_growth(old, head, hashes)
        return head

    def _head_files(self, head: TreeHead, note: bytes, key: VerifierKey) -> dict[str, bytes | None]:
        files: dict[str, bytes | None] = {
            head_name(head.size): note,
            CHECKPOINT_FILE: note,
            ROOTS_FILE: self._roots(head),
        }
        if key not in self.keys():
            files[VKEYS_FILE] = (self._store.file(VKEYS_FILE) or b"") + f"{key}\n".encode()
        return files

    def _roots(self, head: TreeHead) -> bytes:
        """Add a head to the list for people and programs; one that cannot be read begins anew."""
        listed = read_roots(self._store.file(ROOTS_FILE))
        root = {
            "size": head.size,
            "root": f"sha256:{head.root.hex()}",
            "timestamp": timestamp_text(self._kit.clock.now()),
        }
        return write_roots([*listed, root][-ROOTS_MAX:])

    def _proof(self, index: int, leaf: bytes, checkpoint: bytes) -> TlogProof:
        head = _head_of(checkpoint)
        try:
            return self._proven(index, leaf, head, checkpoint)
        except CheckpointError:
            if self._store.read_only:
                raise
            # It may be the tiles that are damaged: the entries decide.
            self.tiles.rebuild()
        return self._proven(index, leaf, head, checkpoint)

    def _proven(self, index: int, leaf: bytes, head: TreeHead, checkpoint: bytes) -> TlogProof:
        hashes = inclusion_proof(index, head.size, self.tiles.hashes(head.size))
        verify_inclusion(leaf, index, head.size, hashes, head.root)
        return TlogProof(index, hashes, checkpoint)

    def _cosigned(self, data: bytes) -> tuple[TreeHead, Note, bytes]:
        """Read what a witness gave; answer the head, the note, and the head as it is stored."""
        newest = self.checkpoint()
        if newest is not None and data.startswith("\u2014 ".encode()):
            data = newest.rpartition(b"\n\n")[0] + b"\n\n" + data
        note = parse_note(data)
        head = parse_head(note.text)
        stored = self._store.file(head_name(head.size))
        if stored is None or parse_note(stored).text != note.text:
            raise CheckpointNotFoundError(
                "this log never signed such a head", place=f"{ascii(head.origin)[:80]}, size {head.size}"
            )
        return head, note, stored

    def _keep_cosigned(self, head: TreeHead, stored: bytes, cosigned: bytes, new: list[Signature]) -> bool:
        name = head_name(head.size)
        files: dict[str, bytes | None] = {name: cosigned}
        expected: dict[str, bytes | None] = {name: stored}
        if self._store.file(CHECKPOINT_FILE) == stored:
            files[CHECKPOINT_FILE], expected[CHECKPOINT_FILE] = cosigned, stored
        witnesses = ", ".join(sorted({line.name for line in new}))[:512]
        told = self._told(AuditType.HEAD_COSIGNED, {"size": head.size, "witnesses": witnesses})
        return self._commit(files, expected, told)

    def _told(
        self, type: AuditType, facts: Facts, outcome: Outcome = Outcome.SUCCESS
    ) -> tuple[AuditEntry, ...]:
        return self._trail.told(type, session_id=HEADS_SESSION, outcome=outcome, facts=facts)

    def _commit(
        self,
        files: dict[str, bytes | None],
        expected: dict[str, bytes | None],
        told: tuple[AuditEntry, ...] = (),
    ) -> bool:
        """Commit files; False if one of those expected was changed meanwhile."""
        commit = Commit(NO_WORKFLOW, Head(), audit=told, files=files, expected_files=expected)
        [outcome] = self._store.commit([commit])
        if isinstance(outcome, CheckpointConflictError):
            return False
        if outcome is not None:
            raise outcome
        return True


def head_name(size: int) -> str:
    """Name the file of a signed head."""
    return f"{HEADS}{size:020d}"


def read_roots(data: bytes | None) -> list[dict[str, Any]]:
    """Read a `merkle_roots.json`; it is a view: one that is none is empty."""
    try:
        return [root for root in read_json(data or b"[]") if isinstance(root, dict)]
    except (ValueError, TypeError):
        return []


def write_roots(roots: Sequence[dict[str, Any]]) -> bytes:
    """Write a `merkle_roots.json`, one head on each line."""
    lines = ",\n".join(json.dumps(root, separators=(",", ":")) for root in roots)
    return f"[\n{lines}\n]\n".encode() if roots else b"[]\n"


def _head_of(checkpoint: bytes) -> TreeHead:
    return parse_head(parse_note(checkpoint).text)
