import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.crypto.signing import verify
from holdfast.domain.errors import CheckpointCorruptError, ChecksumMismatchError, InvalidStateError
from holdfast.domain.merkle import EMPTY_ROOT, SIZE_MAX, leaf_hash
from holdfast.domain.note import parse_note
from holdfast.domain.tiles import TileHashes
from holdfast.domain.treehead import TreeHead, check_growth, open_head, parse_head, parse_number, sign_head
from tests.trails import LOG_KEY, ORIGIN, WITNESS_KEY, make_log, signed_head, vectors

VECTORS = vectors("notes.json")
ROOT = bytes(range(32))
ROOT_TEXT = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
ORIGINS = st.text(min_size=1, max_size=20).filter(str.isprintable)
HEADS = st.builds(TreeHead, ORIGINS, st.integers(0, SIZE_MAX), st.binary(min_size=32, max_size=32))


def test_the_published_head_is_read_and_written_back():
    case = VECTORS["checkpoint"]
    head = parse_head(case["text"])
    assert head == TreeHead(case["origin"], case["size"], leaf_hash(case["leaf"].encode()))
    assert head.text() == case["text"]


@pytest.mark.parametrize("text", VECTORS["bad_checkpoints"])
def test_published_texts_that_are_no_heads_are_refused(text):
    with pytest.raises(CheckpointCorruptError):
        parse_head(text)


@pytest.mark.parametrize("number", range(16))
def test_the_heads_of_another_implementation_are_read(number):
    text = vectors("tessera_log.json")["checkpoints"][number]
    assert parse_head(parse_note(text.encode()).text).size == number


@given(HEADS)
def test_a_head_is_read_back_as_it_was_written(head):
    assert parse_head(head.text()) == head


BAD_HEADS = {
    "": "three lines",
    "origin\n5\n": "three lines",
    f"origin\n5\n{ROOT_TEXT}": "three lines",
    f"origin\n5\n{ROOT_TEXT}\nextension\n": "three lines",
    f"origin\n5\n{ROOT_TEXT}\n\n": "three lines",
    f"\n5\n{ROOT_TEXT}\n": "does not name its log: line 1",
    f"a\x7fb\n5\n{ROOT_TEXT}\n": "does not name its log: line 1",
    f"origin\n05\n{ROOT_TEXT}\n": "not a number: line 2",
    f"origin\n-5\n{ROOT_TEXT}\n": "not a number: line 2",
    f"origin\n٥\n{ROOT_TEXT}\n": "not a number: line 2",
    f"origin\n{2**63}\n{ROOT_TEXT}\n": "not a number: line 2",
    f"origin\n{10**30}\n{ROOT_TEXT}\n": "not a number: line 2",
    "origin\n5\nAAAA\n": "no SHA-256 hash: line 3",
    f"origin\n5\n{ROOT_TEXT[:-1]}\n": "base64: line 3",
}


@pytest.mark.parametrize("text", BAD_HEADS)
def test_what_is_no_head_is_refused_with_its_place(text):
    with pytest.raises(CheckpointCorruptError, match=BAD_HEADS[text]):
        parse_head(text)


@given(st.text(max_size=60) | st.tuples(ORIGINS, st.text(max_size=4), st.just(ROOT_TEXT)).map("\n".join))
def test_any_text_is_a_head_or_a_told_error(text):
    try:
        assert parse_head(text).text() == text
    except CheckpointCorruptError as fault:
        assert fault.message


@pytest.mark.parametrize(
    "head", [TreeHead("", 1, ROOT), TreeHead("a\nb", 1, ROOT), TreeHead("a", -1, ROOT), TreeHead("a", 1, b"")]
)
def test_what_cannot_be_a_head_is_not_written(head):
    with pytest.raises(InvalidStateError):
        head.text()


def test_a_number_says_where_it_stands():
    assert parse_number("0", "it") == 0
    with pytest.raises(CheckpointCorruptError, match="it is not a number: '1x'"):
        parse_number("1x", "it")


def test_a_head_is_signed_by_its_log_and_opened_by_its_key():
    head = TreeHead(ORIGIN, 5, ROOT)
    data = sign_head(head, LOG_KEY.key, LOG_KEY.sign)
    found, verified = open_head(data, [LOG_KEY.key], verify)
    assert found == head
    assert [signer.key for signer in verified] == [LOG_KEY.key]
    with pytest.raises(InvalidStateError, match=r"example\.com/audit does not sign for example\.org"):
        sign_head(TreeHead("example.org", 5, ROOT), LOG_KEY.key, LOG_KEY.sign)


def test_a_head_that_only_a_witness_vouches_for_is_not_opened():
    with pytest.raises(ChecksumMismatchError, match="no known key of"):
        open_head(signed_head(5, ROOT), [WITNESS_KEY.key], verify)


def test_a_log_signs_nothing_that_did_not_grow_out_of_what_it_signed_before():
    log, other = make_log(12, (5, 12)), make_log(12, (5, 12), sessions=3)
    hashes = TileHashes(12, lambda tile: log.tiles.get(tile.path))
    check_growth(log.pin(0), log.pin(1), hashes)
    check_growth(TreeHead(ORIGIN, 0, EMPTY_ROOT), log.pin(1), hashes)
    check_growth(log.pin(1), log.pin(1), hashes)
    for old in (other.pin(0), other.pin(1), TreeHead("example.org", 5, log.pin(0).root)):
        with pytest.raises(ChecksumMismatchError, match="did not grow out of"):
            check_growth(old, log.pin(1), hashes)
    with pytest.raises(ChecksumMismatchError, match="a log of 5 entries did not grow out of one with 12"):
        check_growth(log.pin(1), log.pin(0), hashes)
