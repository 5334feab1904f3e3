"""What proves a trail: entries, payloads, notes, proofs, tiles, keys, requests to a witness, exports."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from functools import cache
from pathlib import Path

from holdfast.adapters.crypto.cipher import Xaes256Gcm
from holdfast.adapters.crypto.key_sources import key_source, read_key
from holdfast.adapters.crypto.signing import SigningKey, verify
from holdfast.application.audit.audit_export import write_export
from holdfast.application.audit.export_source import ExportSource
from holdfast.bootstrap import build_kit, open_store
from holdfast.config import Config
from holdfast.domain import tiles
from holdfast.domain.audit_entry import TrailHead
from holdfast.domain.keyring_file import KeyringFile, WrappedKey, Wrapping
from holdfast.domain.log_check import read_mark
from holdfast.domain.merkle import leaf_hash
from holdfast.domain.note import open_note, parse_note, parse_vkey
from holdfast.domain.payload import commitment, decode_payload, encode_payload
from holdfast.domain.session_check import SessionEvidence, verify_evidence
from holdfast.domain.tlogproof import TlogProof, parse_tlog_proof, verify_tlog_proof
from holdfast.domain.trail import check_follows, claimed_id, decode_entry, place_of, read_fields, session_of
from holdfast.domain.treehead import open_head, parse_head
from holdfast.domain.usual_line import read_usual
from holdfast.domain.witness import AddCheckpoint, judge, parse_add_checkpoint
from tests.fuzz import mending, real_store
from tests.fuzz.target import Target, same, text_of
from tests.trails import EVERYTHING, LOG_KEY, SALT, WITNESS_KEY, signed_head

_KEYS = (LOG_KEY.key, WITNESS_KEY.key)
_HEAD = signed_head(1, leaf_hash(b"leaf"))
_PROOF = TlogProof(0, (), _HEAD).encode()
_CIPHER = Xaes256Gcm().key(bytes(32))


def _entry(data: bytes) -> None:
    place_of(data)
    claimed_id(data)
    session_of(data)
    line = mending.entry(data)
    usual = read_usual(line)
    fields = read_fields(line)
    if usual is not None:
        same(usual, fields)
    decode_entry(line, None)
    check_follows(fields, TrailHead("s-1"))


def _entry_seeds() -> Iterable[bytes]:
    return [line for data in real_store.named("audit_trail.jsonl") for line in data.splitlines(keepends=True)]


def _payload(data: bytes) -> None:
    found = decode_payload(data, commitment(data))
    stored = encode_payload(found, SALT)
    same(decode_payload(stored, commitment(stored)), found)


def _note(data: bytes) -> None:
    note = parse_note(data)
    same(parse_note(note.encode()), note)
    open_note(data, _KEYS, verify)


def _head(data: bytes) -> None:
    text = text_of(data)
    if "\n" in text and not any("\ud800" <= letter <= "\udfff" for letter in text):
        found = parse_head(text)
        same(parse_head(found.text()), found)
    open_head(data, _KEYS, verify)


def _mark(data: bytes) -> None:
    read_mark(data, "place", EVERYTHING)


def _proof(data: bytes) -> None:
    found = parse_tlog_proof(data)
    same(parse_tlog_proof(found.encode()), found)
    verify_tlog_proof(found, b"leaf", _KEYS, verify)


def _evidence(data: bytes) -> None:
    line = next(iter(_entry_seeds()))
    verify_evidence(SessionEvidence("s-1", [line], _HEAD, [data], None), EVERYTHING)


def _vkey(data: bytes) -> None:
    found = parse_vkey(text_of(data))
    same(parse_vkey(str(found)), found)


def _skey(data: bytes) -> None:
    found = SigningKey.parse(text_of(data))
    same(SigningKey.parse(found.to_text()), found)


def _key_text(data: bytes) -> None:
    key_source(text_of(data))
    read_key(data, "place")


def _bundle(data: bytes) -> None:
    entries = list(tiles.unpack_bundle(data))
    same(tiles.pack_bundle(entries), data)


def _tile(data: bytes) -> None:
    path, _, hashes = data.partition(b"\n")
    tile = tiles.parse_tile_path(text_of(path))
    same(tiles.parse_tile_path(tile.path), tile)
    tiles.split_tile(tile, hashes)


def _witness(data: bytes) -> None:
    found = parse_add_checkpoint(data)
    same(parse_add_checkpoint(found.encode()), found)
    judge(data, [LOG_KEY.key], lambda origin: None, verify)


def _keyring(data: bytes) -> None:
    found = KeyringFile.decode(data)
    same(KeyringFile.decode(found.encode()), found)


def _wrapped(data: bytes) -> None:
    found = WrappedKey.decode(data, "place")
    same(WrappedKey.decode(found.encode(), "place"), found)


def _sealed(data: bytes) -> None:
    _CIPHER.open(data, b"place")


@cache
def _export() -> tuple[Path, dict[str, bytes]]:
    """Export the trail of a store, as a stranger gets it."""
    folder = Path(real_store.folder())
    real_store.fill(f"file:{folder}/store")
    with closing(open_store(Config(store=f"file:{folder}/store"))) as store:
        write_export(build_kit(store, Config()), folder / "export")
    files = {
        str(path.relative_to(folder / "export")): path.read_bytes()
        for path in (folder / "export").rglob("*")
        if path.is_file()
    }
    return folder / "export", dict(sorted(files.items()))


def _exported(data: bytes) -> None:
    """Replace one file of an export, and verify it."""
    folder, files = _export()
    path = sorted(files)[data[0] % len(files)] if data else sorted(files)[0]
    (folder / path).write_bytes(data[1:])
    try:
        ExportSource(folder).verify(EVERYTHING)
    finally:
        (folder / path).write_bytes(files[path])


def _exported_seeds() -> Iterable[bytes]:
    return [bytes([at]) + data for at, data in enumerate(_export()[1].values())]


TARGETS = (
    Target("trail_entry", _entry, _entry_seeds),
    Target("trail_payload", _payload, lambda: [encode_payload({"why": "because", "n": 1}, SALT)]),
    Target("signed_note", _note, lambda: [_HEAD]),
    Target("tree_head", _head, lambda: [_HEAD, _HEAD.partition(b"\n\n")[0] + b"\n"]),
    Target("log_mark", _mark, lambda: [_HEAD]),
    Target(
        "tlog_proof", _proof, lambda: [_PROOF, TlogProof(3, (bytes(32), bytes(32)), _HEAD, b"x").encode()]
    ),
    Target("session_proof", _evidence, lambda: [_PROOF]),
    Target("public_key", _vkey, lambda: [str(key).encode() for key in _KEYS]),
    Target("private_key", _skey, lambda: [LOG_KEY.to_text().encode()]),
    Target("key_text", _key_text, lambda: [b"file:/key", b"env:KEY", b"00" * 32, b"A" * 43 + b"="]),
    Target("entry_bundle", _bundle, lambda: [tiles.pack_bundle([b"one", b"", b"three"])]),
    Target("tile", _tile, lambda: [b"tile/0/000.p/2\n" + bytes(64), b"tile/entries/x001/234\n"]),
    Target("witness_request", _witness, lambda: [AddCheckpoint(0, (), _HEAD).encode()]),
    Target(
        "keyring_file",
        _keyring,
        lambda: [KeyringFile("id", "xaes", "check", {"check": Wrapping("file:key", b"index")}).encode()],
    ),
    Target("wrapped_key", _wrapped, lambda: [WrappedKey({"check": b"wrapped"}).encode()]),
    Target("sealed_bytes", _sealed, lambda: [_CIPHER.seal(b"secret", b"place", bytes(24))]),
    Target("export_folder", _exported, _exported_seeds),
)
