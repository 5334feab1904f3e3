import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.crypto.signing import SigningKey, verify
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    CheckpointWriteError,
    InvalidIdError,
    PermissionDeniedError,
)
from holdfast.domain.note import COSIGNATURE, ED25519, parse_vkey
from tests.trails import vectors

NOTES = vectors("notes.json")
TESSERA = vectors("tessera_log.json")


@pytest.mark.parametrize(
    ("skey", "vkey"), [(NOTES["skey"], NOTES["skey_vkey"]), (TESSERA["skey"], TESSERA["vkey"])]
)
def test_published_private_keys_are_read_and_written_back(skey, vkey):
    signer = SigningKey.parse(skey)
    assert str(signer.key) == vkey
    assert signer.to_text() == skey


def test_no_piece_of_a_private_key_and_none_with_one_character_changed_is_a_private_key():
    text = NOTES["skey"]
    pieces = {text[first:end] for first in range(len(text)) for end in range(first + 1, len(text) + 1)}
    changed = {text[:at] + chr(ord(text[at]) + 1) + text[at + 1 :] for at in range(len(text))}
    for wrong in (pieces | changed) - {text}:
        with pytest.raises(CheckpointCorruptError, match="not a private key"):
            SigningKey.parse(wrong)


@pytest.mark.parametrize("kind", [ED25519, COSIGNATURE])
def test_a_new_key_signs_and_its_public_half_verifies(kind):
    signer = SigningKey.generate("example.com/audit", kind)
    signature = signer.sign(b"message")
    assert verify(signer.key.public_key, b"message", signature)
    assert not verify(signer.key.public_key, b"massage", signature)
    assert not verify(SigningKey.generate("other").key.public_key, b"message", signature)
    assert parse_vkey(str(signer.key)) == signer.key
    assert SigningKey.generate("example.com/audit", kind).key != signer.key


@given(st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=70))
def test_nothing_makes_the_check_of_a_signature_raise(public_key, message, signature):
    assert not verify(public_key, message, signature)


def test_a_private_key_is_kept_for_its_owner_alone(tmp_path):
    path = tmp_path / "log.key"
    signer = SigningKey.generate("example.com/audit")
    before = os.umask(0)
    try:
        signer.save(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == signer.to_text() + "\n"
    loaded = SigningKey.load(path)
    assert loaded.key == signer.key
    assert loaded.sign(b"message") == signer.sign(b"message")


def test_an_existing_key_is_never_replaced(tmp_path):
    path = tmp_path / "log.key"
    SigningKey.generate("first").save(path)
    text = path.read_text()
    with pytest.raises(CheckpointWriteError, match="File exists"):
        SigningKey.generate("second").save(path)
    assert path.read_text() == text
    with pytest.raises(CheckpointWriteError, match="No such file"):
        SigningKey.generate("third").save(tmp_path / "nowhere" / "log.key")


def test_a_key_that_could_not_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CheckpointWriteError, match="No space left"):
        SigningKey.generate("first").save(tmp_path / "log.key")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_could_read_is_not_used(tmp_path, mode):
    path = tmp_path / "log.key"
    SigningKey.generate("first").save(path)
    path.chmod(mode)
    with pytest.raises(PermissionDeniedError, match="may be read by others"):
        SigningKey.load(path)


def test_only_a_plain_file_is_a_key_file(tmp_path):
    with pytest.raises(CheckpointNotFoundError, match="no key file"):
        SigningKey.load(tmp_path / "log.key")
    SigningKey.generate("first").save(tmp_path / "real.key")
    (tmp_path / "link.key").symlink_to(tmp_path / "real.key")
    os.mkfifo(tmp_path / "pipe.key", 0o600)
    for name in ("link.key", "pipe.key"):
        with pytest.raises(PermissionDeniedError):
            SigningKey.load(tmp_path / name)
    (tmp_path / "other.key").write_text("something else")
    (tmp_path / "other.key").chmod(0o600)
    with pytest.raises(CheckpointCorruptError, match="not a private key"):
        SigningKey.load(tmp_path / "other.key")


def test_a_private_key_is_never_shown():
    signer = SigningKey.parse(NOTES["skey"])
    secret = NOTES["skey"].rpartition("+")[2]
    assert secret not in repr(signer) and secret not in str(signer)
    with pytest.raises(CheckpointCorruptError) as caught:
        SigningKey.parse(NOTES["skey"][:-1] + "A")
    assert secret[:10] not in str(caught.value)


def test_a_key_has_a_name_that_notes_can_have():
    with pytest.raises(InvalidIdError):
        SigningKey.generate("two words")
