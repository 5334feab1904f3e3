import base64
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.crypto.signing import SigningKey, verify
from holdfast.domain.errors import (
    CheckpointCorruptError,
    ChecksumMismatchError,
    InvalidIdError,
    InvalidStateError,
)
from holdfast.domain.note import (
    COSIGNATURE,
    ED25519,
    NOTE_BYTES_MAX,
    SIGNATURES_MAX,
    TIME_MAX,
    Note,
    Signature,
    VerifierKey,
    cosigned_message,
    open_note,
    parse_note,
    parse_vkey,
    sign_text,
    verify_signatures,
)
from tests.trails import LOG_KEY, WITNESS_KEY, vectors

VECTORS = vectors("notes.json")
TEXT = "one line\nanother\n"
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.just("\n"), max_size=60).map(
    "{}\n".format
)
NAMES = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=12
).filter(lambda name: "+" not in name and not any(char.isspace() for char in name))
KEYS = st.builds(
    VerifierKey, NAMES, st.binary(min_size=32, max_size=32), st.sampled_from([ED25519, COSIGNATURE])
)
SIGNATURES = st.builds(
    Signature, NAMES, st.binary(min_size=4, max_size=4), st.binary(min_size=1, max_size=80)
)


def signed(text=TEXT, signer=LOG_KEY, **more):
    return Note(text, (sign_text(text, signer.key, signer.sign, **more),))


@pytest.mark.parametrize("case", VECTORS["notes"], ids=lambda case: case["name"])
def test_published_notes_are_opened(case):
    keys = [parse_vkey(text) for text in case["vkeys"]]
    note, verified = open_note(case["note"].encode(), keys, verify)
    assert note.text == case["text"]
    assert [found.key.name for found in verified] == case["verified"]
    assert note.encode() == case["note"].encode()


@pytest.mark.parametrize("case", VECTORS["refused"], ids=lambda case: case["name"])
def test_published_notes_that_prove_nothing_are_refused(case):
    with pytest.raises(ChecksumMismatchError):
        open_note(case["note"].encode(), [parse_vkey(text) for text in case["vkeys"]], verify)


@pytest.mark.parametrize("text", [*VECTORS["malformed"], ""])
def test_published_texts_that_are_no_notes_are_refused(text):
    with pytest.raises(CheckpointCorruptError):
        parse_note(text.encode())


@pytest.mark.parametrize("text", VECTORS["vkeys"])
def test_published_keys_are_read_and_written_back(text):
    assert str(parse_vkey(text)) == text


@pytest.mark.parametrize("text", VECTORS["bad_vkeys"])
def test_published_texts_that_are_no_keys_are_refused(text):
    with pytest.raises(CheckpointCorruptError, match=r"not a public key|not in base64"):
        parse_vkey(text)


def test_no_piece_of_a_key_and_no_key_with_one_character_changed_is_a_key():
    text = VECTORS["vkeys"][0]
    pieces = {text[first:end] for first in range(len(text)) for end in range(first + 1, len(text) + 1)}
    changed = {text[:at] + chr(ord(text[at]) + 1) + text[at + 1 :] for at in range(len(text))}
    for wrong in (pieces | changed) - {text}:
        with pytest.raises(CheckpointCorruptError):
            parse_vkey(wrong)


def test_the_published_time_of_a_cosignature_is_read():
    case = VECTORS["cosignature_time"]
    material = base64.b64decode(case["signature"])
    key = WITNESS_KEY.key
    note = Note(TEXT, (Signature(key.name, key.id, material[4:]),))
    [found] = verify_signatures(note, [key], lambda public_key, message, signature: True)
    assert found.timestamp == case["time"]


def test_a_witness_signs_the_published_message():
    case = VECTORS["cosigned_message"]
    assert cosigned_message(case["time"], case["body"]) == case["message"].encode()


def test_a_cosignature_holds_for_its_time_only():
    note = signed(signer=WITNESS_KEY, timestamp=1_700_000_000)
    [found] = verify_signatures(note, [WITNESS_KEY.key], verify)
    assert found.timestamp == 1_700_000_000
    [line] = note.signatures
    moved = replace(line, data=(1_700_000_001).to_bytes(8, "big") + line.data[8:])
    with pytest.raises(ChecksumMismatchError):
        verify_signatures(replace(note, signatures=(moved,)), [WITNESS_KEY.key], verify)
    endless = replace(line, data=(TIME_MAX + 1).to_bytes(8, "big") + line.data[8:])
    with pytest.raises(ChecksumMismatchError):
        verify_signatures(replace(note, signatures=(endless,)), [WITNESS_KEY.key], lambda *_: True)


def test_signatures_of_the_two_kinds_do_not_stand_in_for_each_other():
    plain = SigningKey.from_seed("twin", bytes(32))
    timed = SigningKey.from_seed("twin", bytes(32), COSIGNATURE)
    assert plain.key.id != timed.key.id
    with pytest.raises(ChecksumMismatchError, match="no key that is known here"):
        open_note(signed(signer=plain).encode(), [timed.key], verify)


@pytest.mark.parametrize(
    ("key", "timestamp"), [(LOG_KEY, 5), (WITNESS_KEY, None), (WITNESS_KEY, -1), (WITNESS_KEY, TIME_MAX + 1)]
)
def test_a_time_belongs_to_a_cosignature_and_to_nothing_else(key, timestamp):
    with pytest.raises(InvalidStateError, match="time"):
        sign_text(TEXT, key.key, key.sign, timestamp=timestamp)


@pytest.mark.parametrize("text", ["", "no end", "a\tb\n", "a\rb\n", "\ud800\n"])
def test_what_cannot_be_a_note_is_not_signed(text):
    with pytest.raises(InvalidStateError, match="ends with a newline"):
        sign_text(text, LOG_KEY.key, LOG_KEY.sign)


@given(TEXTS, st.lists(SIGNATURES, min_size=1, max_size=4))
def test_a_note_is_read_back_as_it_was_written(text, signatures):
    note = Note(text, tuple(signatures))
    assert parse_note(note.encode()) == note


@given(KEYS)
def test_a_key_is_read_back_as_it_was_written(key):
    assert parse_vkey(str(key)) == key


@given(
    st.binary(max_size=200)
    | TEXTS.map(str.encode)
    | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace"))
)
def test_any_bytes_are_a_note_or_a_told_error(data):
    try:
        assert parse_note(data).encode() == data
    except CheckpointCorruptError as fault:
        assert fault.message


@given(st.data())
def test_a_note_with_bytes_changed_is_never_taken_for_the_signed_one(data):
    whole = signed().encode()
    at = data.draw(st.integers(0, len(whole) - 1))
    piece = data.draw(st.binary(max_size=4).filter(lambda piece: piece != whole[at : at + 1]))
    changed = whole[:at] + piece + whole[at + 1 :]
    with pytest.raises(CheckpointCorruptError):
        open_note(changed, [LOG_KEY.key], verify)


def test_every_bit_of_a_signed_note_matters():
    whole = signed().encode()
    for bit in range(len(whole) * 8):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CheckpointCorruptError):
            open_note(bytes(changed), [LOG_KEY.key], verify)


@given(st.text(max_size=80))
def test_any_text_is_a_key_or_a_told_error(text):
    try:
        assert str(parse_vkey(text)) == text
    except CheckpointCorruptError as fault:
        assert fault.message


BAD_SIGNATURES = [
    ("- name AAAAAAA=", "no signature"),
    ("\u2014 name", "no signature"),
    ("\u2014  AAAAAAA=", "name is empty"),
    ("\u2014 a+b AAAAAAA=", "plus sign"),
    ("\u2014 a\u00a0b AAAAAAA=", "a space"),
    ("\u2014 name AAAA", "too short"),
    ("\u2014 name AAAAA", "base64"),
    ("\u2014 name AAAAAB==", "base64"),
    ("\u2014 name AAAA AAA=", "base64"),
    ("\u2014 name AAAAA\u00e9==", "base64"),
    ("x", "no signature"),
]


@pytest.mark.parametrize(("line", "problem"), BAD_SIGNATURES)
def test_a_bad_signature_line_is_named_by_its_number(line, problem):
    note = f"text\n\n\u2014 good AAAAAAA=\n{line}\n"
    with pytest.raises(CheckpointCorruptError, match=problem) as caught:
        parse_note(note.encode())
    assert caught.value.place == "line 4"


def test_control_characters_and_broken_text_are_told_with_their_place():
    with pytest.raises(CheckpointCorruptError, match="control character") as caught:
        parse_note(b"a\nb\x00\n\n\xe2\x80\x94 name AAAAAAA=\n")
    assert caught.value.place == "line 2"
    with pytest.raises(CheckpointCorruptError, match="UTF-8") as caught:
        parse_note(b"ab\xff\n")
    assert caught.value.place == "byte 2"


def test_notes_have_limits():
    with pytest.raises(CheckpointCorruptError, match="bytes, more than"):
        parse_note(b"x" * (NOTE_BYTES_MAX + 1))
    line = "\u2014 name AAAAAAA=\n"
    assert len(parse_note(f"text\n\n{line * SIGNATURES_MAX}".encode()).signatures) == SIGNATURES_MAX
    with pytest.raises(CheckpointCorruptError, match="101 signatures"):
        parse_note(f"text\n\n{line * (SIGNATURES_MAX + 1)}".encode())


def test_a_signature_counts_once_and_unknown_ones_do_not_count():
    line = sign_text(TEXT, LOG_KEY.key, LOG_KEY.sign)
    stranger = Signature("stranger", b"\0\0\0\0", b"x")
    same_name = Signature(LOG_KEY.key.name, b"\0\0\0\0", b"x")
    note = Note(TEXT, (stranger, line, same_name, line))
    assert [found.key for found in verify_signatures(note, [LOG_KEY.key], verify)] == [LOG_KEY.key]
    with pytest.raises(ChecksumMismatchError, match=r"but example\.com/audit, stranger"):
        open_note(Note(TEXT, (stranger, same_name)).encode(), [LOG_KEY.key], verify)


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\nb", "\ud800", "\u2028"])
def test_some_names_are_no_names_of_keys(name):
    with pytest.raises(InvalidIdError, match="name"):
        VerifierKey(name, bytes(32))


@pytest.mark.parametrize(("size", "kind"), [(31, ED25519), (32, 2), (33, COSIGNATURE)])
def test_some_bytes_are_no_public_keys(size, kind):
    with pytest.raises(InvalidIdError, match="no known public key"):
        VerifierKey("name", bytes(size), kind)


def test_the_published_private_key_signs_the_published_note():
    signer = SigningKey.parse(VECTORS["skey"])
    assert str(signer.key) == VECTORS["skey_vkey"]
    assert signed(VECTORS["skey_text"], signer).encode() == VECTORS["skey_note"].encode()
