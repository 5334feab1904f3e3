from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.crypto.signing import SigningKey, verify
from holdfast.domain.errors import CheckpointCorruptError, ChecksumMismatchError
from holdfast.domain.merkle import inclusion_proof
from holdfast.domain.note import Note, sign_text
from holdfast.domain.tiles import Tile, TileHashes
from holdfast.domain.tlogproof import (
    PROOF_BYTES_MAX,
    TlogProof,
    parse_tlog_proof,
    verify_tlog_proof,
)
from tests.trails import LOG_KEY, WITNESS_KEY, WITNESSED_AT, make_log, signed_head

LOG = make_log(12, (5, 12))
KEYS = (LOG_KEY.key, WITNESS_KEY.key)
HASHES = st.lists(st.binary(min_size=32, max_size=32), max_size=6).map(tuple)


def tile(wanted: Tile):
    return LOG.tiles.get(wanted.path)


def proof_for(index: int, size: int = 12) -> TlogProof:
    head = LOG.heads[0] if size == 5 else LOG.heads[1]
    return TlogProof(index, inclusion_proof(index, size, TileHashes(size, tile)), head)


def test_the_file_is_the_one_of_the_specification():
    proof = replace(proof_for(1, 5), extra=b"who asked")
    assert proof.encode().decode().split("\n")[:3] == [
        "c2sp.org/tlog-proof@v1",
        "extra d2hvIGFza2Vk",
        "index 1",
    ]
    start, _, checkpoint = proof.encode().partition(b"\n\n")
    assert len(start.split(b"\n")) == 3 + 3
    assert checkpoint == LOG.heads[0]


@pytest.mark.parametrize("index", range(12))
def test_every_entry_is_proven_by_a_file(index):
    proof = parse_tlog_proof(proof_for(index).encode())
    assert proof == proof_for(index)
    head, verified = verify_tlog_proof(proof, LOG.lines[index], KEYS, verify)
    assert head.size == 12
    assert [(found.key, found.timestamp) for found in verified] == [
        (LOG_KEY.key, None),
        (WITNESS_KEY.key, WITNESSED_AT),
    ]


def test_the_proof_of_one_entry_is_none_of_another():
    with pytest.raises(ChecksumMismatchError, match="is not in the tree"):
        verify_tlog_proof(proof_for(3), LOG.lines[4], KEYS, verify)
    with pytest.raises(CheckpointCorruptError):
        verify_tlog_proof(replace(proof_for(3), checkpoint=LOG.heads[0]), LOG.lines[3], KEYS, verify)


def test_the_log_itself_must_have_signed():
    with pytest.raises(ChecksumMismatchError, match=r"no known key of example\.com/audit"):
        verify_tlog_proof(proof_for(3), LOG.lines[3], [WITNESS_KEY.key], verify)
    with pytest.raises(ChecksumMismatchError, match="no key that is known here"):
        verify_tlog_proof(proof_for(3), LOG.lines[3], [], verify)
    stranger = SigningKey.generate("example.org/other")
    text = signed_head(12, bytes(32)).decode().split("\n\n")[0] + "\n"
    head = Note(text, (sign_text(text, stranger.key, stranger.sign),)).encode()
    with pytest.raises(ChecksumMismatchError, match="no known key of"):
        verify_tlog_proof(replace(proof_for(3), checkpoint=head), LOG.lines[3], [stranger.key], verify)


@pytest.mark.sweep
def test_every_bit_of_a_proof_matters():
    proof = replace(proof_for(2, 5), checkpoint=signed_head(5, LOG.pin(0).root, witnessed=False))
    whole = proof.encode()
    for bit in range(len(whole) * 8):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CheckpointCorruptError):
            verify_tlog_proof(parse_tlog_proof(bytes(changed)), LOG.lines[2], KEYS, verify)


@given(st.integers(0, 2**63 - 1), HASHES, st.binary(max_size=20))
def test_a_proof_is_read_back_as_it_was_written(index, hashes, extra):
    proof = TlogProof(index, hashes, LOG.heads[0], extra)
    assert parse_tlog_proof(proof.encode()) == proof


def bad(**changes: str) -> bytes:
    parts = {"header": "c2sp.org/tlog-proof@v1", "extra": "", "index": "index 1\n", "hashes": "", "gap": "\n"}
    parts |= changes
    return (
        parts["header"] + "\n" + parts["extra"] + parts["index"] + parts["hashes"] + parts["gap"]
    ).encode()


HASH_LINE = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
BAD_PROOFS = {
    "does not begin with c2sp": bad(header="c2sp.org/tlog-proof@v2"),
    "extra data of a proof is not in base64": bad(extra="extra \n"),
    "does not tell an index": bad(index=""),
    "index of a proof is not a number": bad(index="index 01\n"),
    "hash 2 of a proof is not in base64": bad(hashes=HASH_LINE + "x\n"),
    "no SHA-256 hash": bad(hashes="AAAA\n"),
    "has 64 hashes": bad(hashes=HASH_LINE * 64),
}


@pytest.mark.parametrize("problem", BAD_PROOFS)
def test_what_is_no_proof_is_refused_and_told(problem):
    with pytest.raises(CheckpointCorruptError, match=problem):
        parse_tlog_proof(BAD_PROOFS[problem] + LOG.heads[0])


def test_a_proof_without_a_head_and_a_proof_without_end_are_refused():
    with pytest.raises(CheckpointCorruptError, match="no signatures"):
        parse_tlog_proof(bad())
    with pytest.raises(CheckpointCorruptError, match="no signed head follows"):
        parse_tlog_proof(bad(gap=""))
    with pytest.raises(CheckpointCorruptError, match="bytes, more than"):
        parse_tlog_proof(b"x" * (PROOF_BYTES_MAX + 1))


@given(st.data())
def test_any_bytes_are_a_proof_or_a_told_error(data):
    whole = proof_for(4).encode()
    at = data.draw(st.integers(0, len(whole)))
    length = data.draw(st.integers(0, 40))
    changed = whole[:at] + data.draw(st.binary(max_size=20)) + whole[at + length :]
    try:
        assert parse_tlog_proof(changed).encode() == changed
    except CheckpointCorruptError as fault:
        assert fault.message
