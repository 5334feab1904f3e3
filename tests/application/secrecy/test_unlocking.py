import pytest

import holdfast
from holdfast.adapters.crypto.cipher import Xaes256Gcm
from holdfast.adapters.memory import MemoryStore
from holdfast.application.secrecy.unlocking import create_keyring, may_create, open_vault
from holdfast.domain.errors import ConfigError, KeyUnavailableError
from holdfast.domain.keyring_file import KEYRING
from tests.encrypted import NEW_KEY, OLD_KEY, GivenKey, encrypted_store, latest, service


def unlock(store, *sources, encrypt=False):
    return open_vault(store, Xaes256Gcm, sources, encrypt=encrypt)


def test_a_store_in_the_clear_has_no_vault():
    assert unlock(MemoryStore()) is None


def test_a_new_store_becomes_an_encrypted_one_when_asked():
    store, source = MemoryStore(), GivenKey()
    assert not unlock(store, source, encrypt=True).is_locked
    assert source.fetched == 1
    assert not unlock(store, source).is_locked
    assert not unlock(store, source, encrypt=True).is_locked


def test_an_encrypted_store_is_not_opened_for_writing_without_its_key():
    store = encrypted_store()
    with pytest.raises(KeyUnavailableError, match="no key is configured"):
        unlock(store)
    with pytest.raises(KeyUnavailableError, match="is not the one"):
        unlock(store, GivenKey(NEW_KEY))
    with pytest.raises(KeyUnavailableError, match="today"):
        unlock(store, GivenKey(None))


def test_for_reading_the_key_is_fetched_when_something_has_to_be_opened():
    store, source = encrypted_store(), GivenKey()
    store.read_only = True
    opened = unlock(store, source)
    assert opened.is_locked and source.fetched == 0
    assert opened.keyring.find("workflow:W") is None
    assert not opened.is_locked and source.fetched == 1
    assert unlock(store).is_locked


def test_a_store_that_lost_its_keyring_is_not_written_in_the_clear():
    store = encrypted_store()
    store._files.clear()
    with pytest.raises(ConfigError, match="is not encrypted"):
        unlock(store, GivenKey())
    with service(store, encryption_key=None) as opened:
        opened.create_checkpoint("W", {})
    with pytest.raises(ConfigError, match="holds data that is not encrypted"):
        unlock(store, GivenKey(), encrypt=True)


def test_no_store_is_made_without_the_key_it_should_have_had():
    assert may_create([], encrypt=False)
    assert may_create([GivenKey()], encrypt=True)
    assert not may_create([GivenKey()], encrypt=False)
    for sources in ([], [GivenKey(None)]):
        with pytest.raises(KeyUnavailableError):
            may_create(sources, encrypt=True)
    with pytest.raises(KeyUnavailableError):
        create_keyring(MemoryStore(), Xaes256Gcm(), [])


def test_two_who_make_one_store_encrypted_agree_on_one_keyring():
    store = MemoryStore()
    first = create_keyring(store, Xaes256Gcm(), [GivenKey()])
    store.commit([])
    second = create_keyring(store, Xaes256Gcm(), [GivenKey()])
    assert first.id == second.id


def test_through_the_front_door(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", OLD_KEY.hex())
    place = tmp_path / "store"
    with pytest.raises(KeyUnavailableError):
        holdfast.open(str(place), encrypt=True)
    with pytest.raises(ConfigError, match="there is no store"):
        holdfast.open(str(place), encryption_key="env:MY_KEY")
    assert not place.exists()
    with holdfast.open(str(place), encrypt=True, encryption_key="env:MY_KEY") as opened:
        opened.create_checkpoint("W", {"n": 1})
    with pytest.raises(KeyUnavailableError):
        holdfast.open(str(place))
    with holdfast.open(str(place), encryption_key="env:MY_KEY") as opened:
        assert latest(opened, "W") == {"n": 1}
    with holdfast.open(str(place), read_only=True) as opened:
        assert [meta.id.sequence for meta in opened.list_checkpoints("W")] == [1]
        with pytest.raises(KeyUnavailableError):
            opened.load_latest("W")
        assert opened.validate_checkpoint("W@1").valid
    assert (place / KEYRING).is_file()
