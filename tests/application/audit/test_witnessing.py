from __future__ import annotations

from contextlib import nullcontext

import pytest

from holdfast.adapters.crypto.signing import verify
from holdfast.application.audit.witnessing import (
    SIZE,
    Answer,
    Witness,
    ask_witness,
    read_cosignatures,
)
from holdfast.domain.errors import (
    CheckpointReadError,
    CheckpointWriteError,
    ChecksumMismatchError,
    InvalidStateError,
)
from holdfast.domain.note import Note, parse_note, verify_signatures
from holdfast.domain.treehead import TreeHead
from holdfast.testing import FixedClock
from tests.process.witnesses import request
from tests.trails import LOG_KEY, NOW, ORIGIN, WITNESS_KEY, Log, make_log

LOG = make_log(12, (4, 8, 12))
OTHER = make_log(12, (4, 8, 12), closes={5})


class Memory:
    """What a witness keeps, and what it did in which order."""

    def __init__(self, *, fails: bool = False) -> None:
        self.heads: dict[str, TreeHead] = {}
        self.fails = fails

    def alone(self):
        return nullcontext()

    def last(self, origin: str) -> TreeHead | None:
        return self.heads.get(origin)

    def keep(self, head: TreeHead) -> None:
        if self.fails:
            raise CheckpointWriteError("the witness cannot remember")
        self.heads[head.origin] = head


def witness(memory: Memory | None = None) -> Witness:
    return Witness(WITNESS_KEY, [LOG_KEY.key], memory or Memory(), verify, FixedClock(NOW))


def unwitnessed(log: Log, number: int) -> bytes:
    return b"\n".join(log.heads[number].split(b"\n")[:5]) + b"\n"


def ask(one: Witness, log: Log, number: int, old: int = 0):
    return ask_witness(
        unwitnessed(log, number), lambda seen: request(log, seen, number), one.answer, old_size=old
    )


def test_a_log_that_grows_is_signed_with_the_time():
    one = witness()
    for number in range(3):
        signatures = ask(one, LOG, number, old=4 * number)
        head = Note(parse_note(LOG.heads[number]).text, signatures)
        (signed,) = verify_signatures(head, [WITNESS_KEY.key], verify)
        assert signed.timestamp == int(NOW.timestamp())


def test_a_log_that_is_wrong_about_the_witness_is_told_and_asks_again():
    one, asked = witness(), []

    def post(body: bytes) -> Answer:
        asked.append(body.split(b"\n")[0])
        return one.answer(body)

    ask(one, LOG, 1)
    assert ask_witness(unwitnessed(LOG, 2), lambda old: request(LOG, old, 2), post, old_size=4)
    assert asked == [b"old 4", b"old 8"]


def test_the_same_head_is_signed_again():
    one = witness()
    assert ask(one, LOG, 1) and ask(one, LOG, 1, old=8)


@pytest.mark.parametrize("number", [1, 2])
def test_another_history_is_not_signed(number: int):
    one = witness()
    ask(one, LOG, 1)
    with pytest.raises(ChecksumMismatchError, match="another history"):
        ask(one, OTHER, number)
    with pytest.raises(ChecksumMismatchError, match="another history"):
        ask(one, OTHER, number, old=8)


def test_a_log_that_was_put_back_is_told_how_much_it_lost():
    one = witness()
    ask(one, LOG, 2)
    with pytest.raises(ChecksumMismatchError, match="it has seen 12 entries, and here are 8"):
        ask(one, LOG, 1)


def test_a_log_that_is_not_known_is_refused():
    one = Witness(WITNESS_KEY, [], Memory(), verify, FixedClock(NOW))
    with pytest.raises(CheckpointReadError, match="404"):
        ask(one, LOG, 0)


@pytest.mark.parametrize("said", [b"", b"many\n", b"-1\n", b"\xff\n"])
def test_a_refusal_without_a_size_is_no_answer(said: bytes):
    with pytest.raises(CheckpointReadError, match="without telling"):
        ask_witness(
            unwitnessed(LOG, 0), lambda old: request(LOG, old, 0), lambda body: Answer(409, said, SIZE)
        )


def test_a_witness_that_contradicts_itself_is_not_asked_for_ever():
    asked = []

    def post(body: bytes) -> Answer:
        asked.append(body)
        return Answer(409, b"%d\n" % (4 * (len(asked) % 2)), SIZE)

    with pytest.raises(ChecksumMismatchError):
        ask_witness(unwitnessed(LOG, 2), lambda old: request(LOG, old, 2), post)
    assert len(asked) == 2


def test_nothing_is_signed_that_is_not_remembered():
    with pytest.raises(CheckpointWriteError):
        witness(Memory(fails=True)).decide(request(LOG, 0, 0))


def test_what_is_signed_was_remembered_first():
    memory, order = Memory(), []

    class Signer:
        key = WITNESS_KEY.key

        def sign(self, message: bytes) -> bytes:
            order.append(memory.heads[ORIGIN].size)
            return WITNESS_KEY.sign(message)

    Witness(Signer(), [LOG_KEY.key], memory, verify, FixedClock(NOW)).decide(request(LOG, 0, 1))
    assert order == [8]


def test_the_key_of_a_log_is_no_key_of_a_witness():
    with pytest.raises(InvalidStateError, match="cosignatures"):
        Witness(LOG_KEY, [], Memory(), verify, FixedClock(NOW))


def test_an_answer_that_is_none_is_refused():
    head = unwitnessed(LOG, 0)
    with pytest.raises(CheckpointReadError, match="no cosignature"):
        read_cosignatures(b"hello\n", head)
    with pytest.raises(CheckpointReadError, match="another head"):
        read_cosignatures(LOG.heads[1], head)


def test_a_whole_note_is_read_as_well_as_its_lines():
    (line,) = read_cosignatures(LOG.heads[0], unwitnessed(LOG, 0))
    assert line.name == WITNESS_KEY.key.name
    assert read_cosignatures(f"{line}\n".encode(), unwitnessed(LOG, 0)) == (line,)
