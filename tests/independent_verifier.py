"""A verifier for an exported trail that shares no code with Holdfast: only the formats are the same.

It is written from the specifications (RFC 8032, RFC 6962, C2SP signed-note, tlog-checkpoint, tlog-tiles,
tlog-proof and Holdfast's page on its format) and needs nothing but Python's standard library, not even a
package for signatures. It reads a folder with

    checkpoint                       the newest signed head
    heads/000...12 ...               all of them
    tile/0/000.p/12, tile/0/000 ...  hashes
    tile/entries/000.p/12 ...        entries
    tail.jsonl                       entries after the newest head
    payloads/000.jsonl ...           payloads
    sessions/*/audit_trail.jsonl     the entries again, session by session
    SHA256SUMS                       sums of all these files

or, if it is that of one session, with sessions/*/proofs/00000001.tlog-proof and so on instead of tiles;
if it is that of a period, with period/audit_trail.jsonl and period/proofs.

    python independent_verifier.py FOLDER VKEY [PROOF ENTRY]

It ends with 0 and a line that says what was verified, or with 1 and what is wrong.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path


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


# Ed25519, as RFC 8032 describes it: points of a curve over the numbers modulo P, in extended coordinates.

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT_OF_MINUS_1 = pow(2, (P - 1) // 4, P)
Point = tuple[int, int, int, int]
NEUTRAL: Point = (0, 1, 1, 0)


def add(first: Point, second: Point) -> Point:
    a = (first[1] - first[0]) * (second[1] - second[0]) % P
    b = (first[1] + first[0]) * (second[1] + second[0]) % P
    c = 2 * first[3] * second[3] * D % P
    d = 2 * first[2] * second[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiply(times: int, point: Point) -> Point:
    result = NEUTRAL
    while times:
        if times & 1:
            result = add(result, point)
        point = add(point, point)
        times >>= 1
    return result


def read_point(data: bytes) -> Point:
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (1 << 255) - 1
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT_OF_MINUS_1 % P
    need(y < P and not (x * x - square) % P and (x != 0 or not sign), "this is no point of the curve")
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


BASE = read_point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    """Tell whether a signature of a message is by a key."""
    if len(key) != 32 or len(signature) != 64:
        return False
    scalar = int.from_bytes(signature[32:], "little")
    try:
        public, nonce = read_point(key), read_point(signature[:32])
    except (Wrong, ValueError):
        return False
    digest = hashlib.sha512(signature[:32] + key + message).digest()
    left = multiply(scalar, BASE)
    right = add(nonce, multiply(int.from_bytes(digest, "little") % ORDER, public))
    # Equal points have equal quotients.
    is_equal = not (left[0] * right[2] - right[0] * left[2]) % P
    return scalar < ORDER and is_equal and not (left[1] * right[2] - right[1] * left[2]) % P


def read_key(vkey: str) -> tuple[str, bytes, bytes]:
    name, key_id, encoded = vkey.strip().split("+", 2)
    material = base64.b64decode(encoded)
    need(material[0] == 1 and len(material) == 33, "the key is not for Ed25519")
    need(sha(name.encode(), b"\n", material)[:4].hex() == key_id, "the key's id is not its own")
    return name, bytes.fromhex(key_id), material[1:]


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
            is_right = is_signed(key, message.encode(), signature[4:])
            need(is_right, "the head's signature is not by the log's key")
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


def check_chains(entries: list[bytes], *, is_part: bool = False) -> dict[str, list[bytes]]:
    """Follow each session's chain; answer the lines of each. A part may begin anywhere in a chain."""
    heads: dict[str, tuple[int, str, str]] = {}
    sessions: dict[str, list[bytes]] = {}
    for index, line in enumerate(entries):
        entry = json.loads(line)
        stated = entry["hash"]
        blank = line.replace(f',"hash":"{stated}"'.encode(), b',"hash":""', 1)
        need(stated == "sha256:" + sha(blank).hex(), f"entry {index} is not what its hash says")
        start = (entry["seq"] - 1, entry["prev_hash"], "") if is_part else (0, "GENESIS", "")
        seq, before, moment = heads.get(entry["session"], start)
        need(entry["seq"] == seq + 1, f"entry {index} leaves a gap in its session")
        need(entry["prev_hash"] == before, f"entry {index} does not follow the one before")
        need(entry["ts"] >= moment, f"entry {index} goes back in time")
        heads[entry["session"]] = (entry["seq"], stated, entry["ts"])
        sessions.setdefault(entry["session"], []).append(line)
    return sessions


def check_sums(folder: Path) -> None:
    if (folder / "SHA256SUMS").is_file():
        for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
            digest, path = line.split("  ", 1)
            need((folder / path).is_file(), f"{path} is not there")
            need(sha((folder / path).read_bytes()).hex() == digest, f"{path} is not what its sum says")


def read_lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True) if path.is_file() else []


def check_payloads(files: Iterator[Path], sessions: dict[str, list[bytes]]) -> int:
    """Compare payloads with what the entries commit to; answer how many there are."""
    seen = set()
    for path in files:
        for number, line in enumerate(read_lines(path), 1):
            fields = json.loads(line)
            has_text = "text" in fields
            stored = (
                fields["text"].encode() if has_text else base64.b64decode(fields["base64"], validate=True)
            )
            lines = sessions[fields["session"]]
            at = fields["seq"] - json.loads(lines[0])["seq"]
            is_right = at >= 0 and json.loads(lines[at])["data"]["payload"] == "sha256:" + sha(stored).hex()
            need(is_right, f"line {number} of {path.name} is not what its entry commits to")
            key = fields["session"], fields["seq"]
            need(key not in seen, f"line {number} of {path.name} is there twice")
            seen.add(key)
    return len(seen)


def check_folder(folder: Path, vkey: str) -> str:
    """Check everything in an export."""
    check_sums(folder)
    if not (folder / "tile").is_dir():
        return check_session(folder, vkey)
    size, root = read_checkpoint((folder / "checkpoint").read_bytes(), vkey)
    entries = read_entries(folder, size)
    leaves = [sha(b"\x00", entry) for entry in entries]
    need(merkle(leaves) == root, "the entries are not those that were signed")
    check_tiles(folder, leaves)
    heads = sorted(folder.glob("heads/*"))
    for path in heads:
        older, older_root = read_checkpoint(path.read_bytes(), vkey)
        need(older <= size and merkle(leaves[:older]) == older_root, f"head {path.name} is of another log")
    tail = read_lines(folder / "tail.jsonl")
    sessions = check_chains(entries + tail)
    check_views(folder, sessions)
    payloads = check_payloads(iter(sorted(folder.glob("payloads/**/*.jsonl"))), sessions)
    told = f"{size} entries of {len(sessions)} sessions verified, {len(tail)} more are not covered"
    return f"{told}, {len(heads)} heads, {payloads} payloads"


def check_views(folder: Path, sessions: dict[str, list[bytes]]) -> None:
    """Compare the files of sessions, whatever their folders are called, with the log."""
    if (folder / "sessions").is_dir():
        files = sorted(path.read_bytes() for path in folder.glob("sessions/*/audit_trail.jsonl"))
        need(
            files == sorted(b"".join(lines) for lines in sessions.values()),
            "the sessions are not those of the log",
        )


def check_session(folder: Path, vkey: str) -> str:
    """Check the export of one session, or of a period: its chains, and the proof of each entry."""
    is_part = (folder / "period").is_dir()
    places = folder.glob("period" if is_part else "sessions/*")
    [place] = [path for path in places if path.is_dir()]
    checkpoint = (folder / "checkpoint").read_bytes()
    size, root = read_checkpoint(checkpoint, vkey)
    lines = read_lines(place / "audit_trail.jsonl")
    sessions = check_chains(lines, is_part=is_part)
    need(is_part or len(sessions) == 1, f"there are {len(sessions)} sessions instead of one")
    last = -1
    for seq, line in enumerate(lines, 1):
        path = place / "proofs" / f"{seq:08d}.tlog-proof"
        need(path.is_file(), f"entry {seq} has no proof")
        index, hashes, signed = read_proof(path.read_bytes())
        need(signed == checkpoint, f"the proof of entry {seq} is for another head")
        need(climb(sha(b"\x00", line), index, size, hashes) == root, f"entry {seq} is not in the signed tree")
        need(index > last, f"entry {seq} is in the wrong order")
        need(not is_part or seq == 1 or index == last + 1, f"entries before {seq} were left out")
        last = index
    payloads = check_payloads(iter([place / "payloads.jsonl"]), sessions)
    told = "a period" if is_part else "one session"
    return f"{len(lines)} entries of {told} verified, in a log of {size}, {payloads} payloads"


def read_proof(data: bytes) -> tuple[int, list[bytes], bytes]:
    start, _, checkpoint = data.partition(b"\n\n")
    header, *lines = start.decode().split("\n")
    need(header == "c2sp.org/tlog-proof@v1", "this is not a proof")
    lines = [line for line in lines if not line.startswith("extra ")]
    need(lines[0].startswith("index "), "the proof has no index")
    hashes = [base64.b64decode(line, validate=True) for line in lines[1:]]
    return int(lines[0][6:]), hashes, checkpoint


def check_proof(data: bytes, entry: bytes, vkey: str) -> str:
    """Check the evidence for one entry."""
    index, hashes, checkpoint = read_proof(data)
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
    if len(arguments) not in (2, 4):
        sys.stderr.write("usage: python independent_verifier.py FOLDER KEY [PROOF ENTRY]\n")
        return 2
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
