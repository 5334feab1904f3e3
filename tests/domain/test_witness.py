import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.crypto.signing import SigningKey, verify
from holdfast.domain.errors import CheckpointCorruptError
from holdfast.domain.merkle import consistency_proof
from holdfast.domain.note import Note, open_note, parse_note, parse_vkey, sign_text
from holdfast.domain.tiles import TileHashes
from holdfast.domain.tlogproof import PROOF_BYTES_MAX
from holdfast.domain.treehead import TreeHead
from holdfast.domain.witness import (
    AddCheckpoint,
    Approval,
    Refusal,
    Status,
    judge,
    parse_add_checkpoint,
)
from tests.trails import LOG_KEY, ORIGIN, WITNESS_KEY, make_log, signed_head, vectors

VECTORS = vectors("witness.json")
LOG = make_log(12, (4, 8, 12))
KEYS = [LOG_KEY.key]


class Memory:
    """What a witness keeps."""

    def __init__(self, *heads: TreeHead) -> None:
        self.heads = {head.origin: head for head in heads}

    def judge(self, data: bytes, keys=KEYS) -> Approval | Refusal:
        answer = judge(data, keys, self.heads.get, verify)
        if isinstance(answer, Approval):
            self.heads[answer.head.origin] = answer.head
        return answer


def request(old: int, number: int, log=LOG) -> bytes:
    """Ask for a signature on one of the log's heads, with the proof from an older size."""
    size = log.pin(number).size
    hashes = TileHashes(size, lambda tile: log.tiles.get(tile.path))
    proof = consistency_proof(old, size, hashes) if old else ()
    return AddCheckpoint(old, proof, log.heads[number]).encode()


def test_the_published_conversation_goes_as_published():
    memory, key = Memory(), parse_vkey(VECTORS["vkey"])
    for case in VECTORS["requests"]:
        answer = memory.judge(case["body"].encode(), [key])
        if case["status"] == 200:
            assert isinstance(answer, Approval)
            continue
        assert isinstance(answer, Refusal)
        # A signature whose base64 is not the canonical one is malformed here before it is wrong.
        is_spelled_wrong = case["status"] == 403
        assert answer.status == (400 if is_spelled_wrong else case["status"])
        if "answer" in case:
            assert f"{answer.seen_size}\n" == case["answer"]
    assert memory.heads[key.name].size == 5


def test_a_log_that_only_grows_is_signed_for_ever():
    memory = Memory()
    for old, number in ((0, 0), (4, 0), (4, 1), (8, 2)):
        answer = memory.judge(request(old, number))
        assert isinstance(answer, Approval), answer
        line = answer.cosign(WITNESS_KEY.key, WITNESS_KEY.sign, 1_700_000_000)
        note = Note(answer.text, (*parse_note(LOG.heads[number]).signatures[:1], line))
        _, verified = open_note(note.encode(), [WITNESS_KEY.key], verify)
        assert verified[0].timestamp == 1_700_000_000
    assert memory.heads[ORIGIN] == LOG.pin(2)


def test_a_log_that_was_put_back_is_not_signed():
    memory = Memory(LOG.pin(2))
    refusal = memory.judge(request(4, 1))
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.seen_size) == (Status.CONFLICT, 12)
    refusal = memory.judge(AddCheckpoint(12, (), LOG.heads[1]).encode())
    assert isinstance(refusal, Refusal) and refusal.status == Status.MALFORMED


def test_a_log_that_was_rewritten_is_not_signed():
    rewritten = make_log(12, (4, 8, 12), sessions=3)
    memory = Memory(LOG.pin(1))
    refusal = memory.judge(request(8, 2, rewritten))
    assert isinstance(refusal, Refusal) and refusal.status == Status.INCONSISTENT
    refusal = memory.judge(request(8, 1, rewritten))
    assert isinstance(refusal, Refusal) and refusal.status == Status.CONFLICT
    assert "another head of size 8" in refusal.reason
    assert memory.heads[ORIGIN] == LOG.pin(1)


def test_a_first_head_needs_no_proof_and_may_have_none():
    refusal = Memory().judge(AddCheckpoint(0, (bytes(32),), LOG.heads[0]).encode())
    assert isinstance(refusal, Refusal) and refusal.status == Status.INCONSISTENT


def test_only_known_logs_with_good_signatures_are_signed():
    stranger = SigningKey.generate("example.org/other")
    text = TreeHead("example.org/other", 4, bytes(32)).text()
    foreign = Note(text, (sign_text(text, stranger.key, stranger.sign),)).encode()
    refusal = Memory().judge(AddCheckpoint(0, (), foreign).encode())
    assert isinstance(refusal, Refusal) and refusal.status == Status.UNKNOWN_LOG
    text = TreeHead(ORIGIN, 4, bytes(32)).text()
    for line in (sign_text(text, stranger.key, stranger.sign), sign_text("x\n", LOG_KEY.key, LOG_KEY.sign)):
        refusal = Memory().judge(AddCheckpoint(0, (), Note(text, (line,)).encode()).encode())
        assert isinstance(refusal, Refusal) and refusal.status == Status.UNSIGNED


def test_an_empty_log_is_signed_and_then_grows():
    empty = signed_head(0, bytes.fromhex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"))
    memory = Memory()
    assert isinstance(memory.judge(AddCheckpoint(0, (), empty).encode()), Approval)
    assert isinstance(memory.judge(request(0, 1)), Approval)


@given(st.integers(0, 2**63 - 1), st.lists(st.binary(min_size=32, max_size=32), max_size=5).map(tuple))
def test_a_request_is_read_back_as_it_was_written(old, proof):
    asked = AddCheckpoint(old, proof, LOG.heads[0])
    assert parse_add_checkpoint(asked.encode()) == asked


BAD_REQUESTS = {
    "does not begin with an old size": b"new 4\n\n" + LOG.heads[0],
    "or no signed head follows": b"old 4\n",
    "old size of a request is not a number": b"old 04\n\n" + LOG.heads[0],
    "hash 1 of a request": b"old 4\nx\n\n" + LOG.heads[0],
    "three lines": b"old 4\n\n" + Note("text\n", parse_note(LOG.heads[0]).signatures).encode(),
    "bytes, more than": b"x" * (PROOF_BYTES_MAX + 1),
}


@pytest.mark.parametrize("problem", BAD_REQUESTS)
def test_what_is_no_request_is_refused_and_told(problem):
    with pytest.raises(CheckpointCorruptError, match=problem):
        parse_add_checkpoint(BAD_REQUESTS[problem])
    refusal = Memory().judge(BAD_REQUESTS[problem])
    assert isinstance(refusal, Refusal)
    assert refusal.status == Status.MALFORMED and problem in refusal.reason


@given(st.data())
def test_whatever_is_asked_is_answered_and_nothing_wrong_is_signed(data):
    whole = request(8, 2)
    at = data.draw(st.integers(0, len(whole) - 1))
    piece = data.draw(st.binary(max_size=6).filter(lambda piece: piece != whole[at : at + 1]))
    answer = Memory(LOG.pin(1)).judge(whole[:at] + piece + whole[at + 1 :])
    # The witness's own line of an earlier time is not looked at; all else must be as it was.
    assert isinstance(answer, Refusal) or answer.head == LOG.pin(2)
