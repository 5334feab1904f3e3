"""A verifier for an exported trail that shares no code with Holdfast: only the formats are the same.

It is written from the specifications (RFC 6962, C2SP signed-note, tlog-checkpoint, tlog-tiles, tlog-proof and
Holdfast's page on its format), needs Python's standard library and `cryptography`, and reads a folder with

    checkpoint                       the signed head
    tile/0/000.p/12, tile/0/000 ...  hashes
    tile/entries/000.p/12 ...        entries

    python independent_verifier.py FOLDER VKEY [PROOF ENTRY]

It ends with 0 and a line that says what was verified, or with 1 and what is wrong.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import sys
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


class Wrong(Exception):
    """What is wrong."""


def need(condition: bool, what: str) -> None:
    if not condition:
        raise Wrong(what)


def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def merkle(hashes: list[bytes]) -> bytes:
    """Give the root over hashes of leaves, straight from the definition."""
    if not hashes:
        return sha()
    if len(hashes) == 1:
        return hashes[0]
    half = 1
    while half * 2 < len(hashes):
        half *= 2
    return sha(b"\x01", merkle(hashes[:half]), merkle(hashes[half:]))


def read_key(vkey: str) -> tuple[str, bytes, Ed25519PublicKey]:
    name, key_id, encoded = vkey.strip().split("+", 2)
    material = base64.b64decode(encoded)
    need(material[0] == 1 and len(material) == 33, "the key is not for Ed25519")
    need(sha(name.encode(), b"\n", material)[:4].hex() == key_id, "the key's id is not its own")
    return name, bytes.fromhex(key_id), Ed25519PublicKey.from_public_bytes(material[1:])


def read_checkpoint(data: bytes, vkey: str) -> tuple[int, bytes]:
    """Check the signature of a head; answer its size and root."""
    name, key_id, key = read_key(vkey)
    text, _, signatures = data.decode().rpartition("\n\n")
    message = text + "\n"
    for line in signatures.splitlines():
        dash, signer, encoded = line.split(" ")
        need(dash == "\u2014", "a signature line does not begin with a dash")
        signature = base64.b64decode(encoded, validate=True)
        if signer == name and signature[:4] == key_id:
            try:
                key.verify(signature[4:], message.encode())
            except InvalidSignature:
                raise Wrong("the head's signature is not by the log's key") from None
            origin, size, root = message.split("\n")[:3]
            need(origin == name and size.isascii() and size.isdigit(), "the head is of another log")
            return int(size), base64.b64decode(root, validate=True)
    raise Wrong("the log's key did not sign the head")


def grid_path(kind: str, index: int, width: int) -> str:
    digits = f"{index:03d}"
    digits = digits.zfill(-(-len(digits) // 3) * 3)
    groups = [digits[at : at + 3] for at in range(0, len(digits), 3)]
    path = "/".join([*(f"x{group}" for group in groups[:-1]), groups[-1]])
    return f"tile/{kind}/{path}" + (f".p/{width}" if width < 256 else "")


def read_grid(folder: Path, kind: str, count: int) -> list[bytes]:
    files = []
    for index in range(-(-count // 256)):
        path = folder / grid_path(kind, index, min(256, count - index * 256))
        need(path.is_file(), f"{path.name} of {kind} is not there")
        files.append(path.read_bytes())
    return files


def read_entries(folder: Path, size: int) -> list[bytes]:
    entries = []
    for data in read_grid(folder, "entries", size):
        while data:
            (length,) = struct.unpack_from(">H", data)
            need(len(data) >= 2 + length, "a bundle of entries is cut off")
            entries.append(data[2 : 2 + length])
            data = data[2 + length :]
    need(len(entries) == size, f"there are {len(entries)} entries instead of {size}")
    return entries


def check_tiles(folder: Path, leaves: list[bytes]) -> None:
    row, level = leaves, 0
    while row:
        stored = b"".join(read_grid(folder, str(level), len(row)))
        need(stored == b"".join(row), f"the tiles of level {level} are not those of the entries")
        row = [merkle(row[at : at + 256]) for at in range(0, len(row) - 255, 256)]
        level += 1


def check_chains(entries: list[bytes]) -> int:
    """Follow each session's chain; answer how many there are."""
    heads: dict[str, tuple[int, str, str]] = {}
    for index, line in enumerate(entries):
        entry = json.loads(line)
        stated = entry["hash"]
        blank = line.replace(f',"hash":"{stated}"'.encode(), b',"hash":""', 1)
        need(stated == "sha256:" + sha(blank).hex(), f"entry {index} is not what its hash says")
        seq, before, moment = heads.get(entry["session"], (0, "GENESIS", ""))
        need(entry["seq"] == seq + 1, f"entry {index} leaves a gap in its session")
        need(entry["prev_hash"] == before, f"entry {index} does not follow the one before")
        need(entry["ts"] >= moment, f"entry {index} goes back in time")
        heads[entry["session"]] = (entry["seq"], stated, entry["ts"])
    return len(heads)


def check_folder(folder: Path, vkey: str) -> str:
    """Check everything in an export."""
    size, root = read_checkpoint((folder / "checkpoint").read_bytes(), vkey)
    entries = read_entries(folder, size)
    leaves = [sha(b"\x00", entry) for entry in entries]
    need(merkle(leaves) == root, "the entries are not those that were signed")
    check_tiles(folder, leaves)
    sessions = check_chains(entries)
    return f"{size} entries of {sessions} sessions verified"


def check_proof(proof: bytes, entry: bytes, vkey: str) -> str:
    """Check a `.tlog-proof` for one entry."""
    start, _, checkpoint = proof.partition(b"\n\n")
    header, *lines = start.decode().split("\n")
    need(header == "c2sp.org/tlog-proof@v1", "this is not a proof")
    lines = [line for line in lines if not line.startswith("extra ")]
    need(lines[0].startswith("index "), "the proof has no index")
    index, hashes = int(lines[0][6:]), [base64.b64decode(line, validate=True) for line in lines[1:]]
    size, root = read_checkpoint(checkpoint, vkey)
    need(climb(sha(b"\x00", entry), index, size, hashes) == root, "the entry is not in the signed tree")
    return f"entry {index} of {size} verified"


def climb(leaf: bytes, index: int, size: int, hashes: list[bytes]) -> bytes:
    """Go from a leaf to the root, splitting the tree as RFC 6962 defines it."""
    if size == 1:
        need(index == 0 and not hashes, "the proof has the wrong length")
        return leaf
    need(bool(hashes) and index < size, "the proof has the wrong length")
    half = 1
    while half * 2 < size:
        half *= 2
    if index < half:
        return sha(b"\x01", climb(leaf, index, half, hashes[:-1]), hashes[-1])
    return sha(b"\x01", hashes[-1], climb(leaf, index - half, size - half, hashes[:-1]))


def main(arguments: list[str]) -> int:
    folder, vkey, *proof = arguments
    try:
        told = check_folder(Path(folder), vkey)
        if proof:
            told += "; " + check_proof(Path(proof[0]).read_bytes(), Path(proof[1]).read_bytes(), vkey)
    except (Wrong, ValueError, KeyError, TypeError, IndexError, struct.error) as fault:
        sys.stderr.write(f"WRONG: {fault}\n")
        return 1
    sys.stdout.write(f"{told}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
