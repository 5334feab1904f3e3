import pytest

from holdfast.domain import plainjson
from holdfast.domain.errors import CheckpointCorruptError, UnsupportedVersionError
from holdfast.domain.ids import check_file_name
from holdfast.domain.keyring_file import (
    KEYRING,
    KeyringFile,
    WrappedKey,
    Wrapping,
    check_value,
    data_key_name,
    lookup_name,
    subject_scope,
    tombstone_name,
    workflow_scope,
)

RING = KeyringFile("id", "XAES-256-GCM", "c1", {"c1": Wrapping("file:k", b"\0" * 72)})


def test_the_files_are_read_back_as_they_were_written():
    assert KeyringFile.decode(RING.encode()) == RING
    wrapped = WrappedKey({"c1": b"one", "c2": b"two"})
    assert WrappedKey.decode(wrapped.encode(), "keys/dek/x") == wrapped


def test_the_files_are_lines_of_json_that_say_what_they_are():
    assert plainjson.loads(RING.encode())["format"] == "holdfast-keyring/1"
    assert plainjson.loads(WrappedKey({}).encode())["format"] == "holdfast-key/1"


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"{}",
        b'{"format": 1}',
        b'{"format": "holdfast-keyring/1"}',
        RING.encode().replace(b'"id":"id"', b'"id":7'),
        RING.encode().replace(b'"current":"c1"', b'"current":"c2"'),
        RING.encode().replace(b'"index":"', b'"index":"!'),
        b"not json",
    ],
)
def test_what_is_no_keyring_is_refused(data):
    with pytest.raises(CheckpointCorruptError):
        KeyringFile.decode(data)


def test_a_key_file_that_is_none_and_one_of_a_later_format_are_told_apart():
    for data in (b'{"format":"holdfast-key/1"}', b'{"format":"holdfast-key/1","wraps":{"c":1}}'):
        with pytest.raises(CheckpointCorruptError):
            WrappedKey.decode(data, "keys/dek/x")
    with pytest.raises(UnsupportedVersionError, match="holdfast-key/2"):
        WrappedKey.decode(b'{"format":"holdfast-key/2"}', "keys/dek/x")


def test_a_check_value_names_a_key_within_its_keyring():
    one, other = bytes(32), bytes(31) + b"\1"
    assert check_value(one, "a") == check_value(one, "a")
    assert len({check_value(one, "a"), check_value(other, "a"), check_value(one, "b")}) == 3
    assert one.hex() not in check_value(one, "a")


def test_lookups_depend_on_the_index_key_and_are_names_of_files():
    names = {
        lookup_name(key, scope)
        for key in (bytes(32), bytes(31) + b"\1")
        for scope in (workflow_scope("a"), subject_scope("a"), subject_scope("\udc80"))
    }
    assert len(names) == 6
    for name in (*names, data_key_name("0" * 32), tombstone_name("0" * 32), KEYRING):
        assert check_file_name(name) == name
