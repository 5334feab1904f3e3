import pytest

from holdfast.application.key_care import Keys
from holdfast.domain.errors import ConfigError, KeyUnavailableError
from holdfast.domain.keyring_file import DATA_KEYS, KEYRING
from tests.encrypted import NEW_KEY, GivenKey, encrypted_store, service


def test_the_listing_tells_whose_each_key_is():
    store = encrypted_store()
    with service(store) as opened:
        opened.create_checkpoint("W", {"n": 1})
        [entry] = opened.keys.listing()
        assert (entry.scope, entry.problem, len(entry.wrapped_by)) == ("workflow:W", "", 1)
        assert opened.keys.check() == []
        assert store.files(DATA_KEYS).__next__() == DATA_KEYS + entry.id


def test_without_the_key_only_ids_are_told():
    store = encrypted_store()
    with service(store) as opened:
        opened.create_checkpoint("W", {"n": 1})
    store.read_only = True
    with service(store, encryption_key=None) as opened:
        [entry] = opened.keys.listing()
        assert (entry.scope, entry.problem) == ("", "")
        with pytest.raises(KeyUnavailableError):
            opened.keys.check()


def test_what_is_wrong_is_named():
    store = encrypted_store()
    with service(store) as opened:
        opened.create_checkpoint("V", {"n": 1})
        opened.create_checkpoint("W", {"n": 1})
        first, second = store.files(DATA_KEYS)
        store._files[first] = store._files[second]
        del store._files[second]
        problems = opened.keys.check()
    assert len(problems) == 2
    assert "was changed" in problems[0] and "not there" in problems[1]


def test_a_damaged_key_file_does_not_hide_the_others():
    store = encrypted_store()
    with service(store) as opened:
        opened.create_checkpoint("V", {"n": 1})
        opened.create_checkpoint("W", {"n": 1})
        first, _ = store.files(DATA_KEYS)
        store._files[first] = b"no key"
        entries = list(opened.keys.listing())
    assert [bool(entry.problem) for entry in entries] == [True, False]


def test_a_rotation_half_done_is_named():
    store = encrypted_store()
    with service(store) as opened:
        found = store.file(KEYRING)
        opened.keys.rotate(GivenKey(NEW_KEY))
        later = store.file(KEYRING)
        from dataclasses import replace

        from holdfast.domain.keyring_file import KeyringFile

        both = {**KeyringFile.decode(found).wrappings, **KeyringFile.decode(later).wrappings}
        store._files[KEYRING] = replace(KeyringFile.decode(later), wrappings=both).encode()
    with service(store, NEW_KEY) as opened:
        assert opened.keys.check() == ["a rotation is not finished: call `holdfast keys rotate` again"]


def test_a_store_in_the_clear_has_no_keys():
    store = encrypted_store()
    store._files.clear()
    with service(store, encryption_key=None) as opened, pytest.raises(ConfigError, match="not encrypted"):
        _ = Keys(opened._engine.kit).keyring
