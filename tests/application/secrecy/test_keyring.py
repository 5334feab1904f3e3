import threading
from dataclasses import replace

import pytest

from holdfast.adapters.crypto.cipher import Xaes256Gcm
from holdfast.application.secrecy import keyring as rings
from holdfast.application.secrecy.keyring import Keyring
from holdfast.domain.errors import (
    CheckpointCorruptError,
    ConfigError,
    KeyDestroyedError,
    KeyUnavailableError,
    SealBrokenError,
)
from holdfast.domain.keyring_file import (
    DATA_KEYS,
    KEYRING,
    LOOKUPS,
    KeyringFile,
    data_key_name,
    tombstone_name,
)
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.domain.trail import decode_entry
from tests.encrypted import NEW_KEY, OLD_KEY, GivenKey, encrypted_store, keyring, service


class Time:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def put(store, files, expected=None):
    [outcome] = store.commit([Commit(NO_WORKFLOW, Head(), files=files, expected_files=expected or {})])
    assert outcome is None


def destroy(store, ring, scope):
    going = ring.destruction(scope)
    put(store, going.files, going.expected_files)
    (key_id,) = going.key_ids
    return key_id


def test_a_scope_has_one_key_and_keeps_it():
    store = encrypted_store()
    first = keyring(store).key_for("workflow:a")
    again, other = keyring(store).key_for("workflow:a"), keyring(store).key_for("workflow:b")
    assert again.id == first.id != other.id
    sealed = first.seal(b"text", b"place")
    assert again.open(sealed, b"place") == b"text"
    assert other.open(sealed, b"place") is None


def test_neither_names_nor_keys_are_in_the_files_of_a_keyring():
    store = encrypted_store()
    key = keyring(store).key_for("subject:alice@example.org")
    files = {name: store.file(name) or b"" for name in store.files("keys/")}
    assert [name for name in files if name.startswith((DATA_KEYS, LOOKUPS))] == [
        data_key_name(key.id),
        key.lookup,
    ]
    everything = b"\n".join([*files.values(), *(name.encode() for name in files)])
    assert (
        b"alice" not in everything and OLD_KEY not in everything and OLD_KEY.hex().encode() not in everything
    )
    assert "alice" not in data_key_name(key.id) + key.lookup


def test_equal_content_seals_to_equal_bytes_under_one_key_and_to_others_under_another():
    ring = keyring(encrypted_store())
    one, two = ring.key_for("workflow:a"), ring.key_for("workflow:b")
    assert one.seal(b"same", b"p") == one.seal(b"same", b"p")
    assert one.seal(b"same", b"p") != one.seal(b"same", b"q")
    assert one.seal(b"same", b"p")[:24] != two.seal(b"same", b"p")[:24]
    assert one.seal(b"p", b"") != one.seal(b"", b"p")


def test_threads_and_processes_that_need_a_new_key_at_once_get_the_same():
    store = encrypted_store()
    found, begin = [], threading.Barrier(8)

    def work():
        ring = keyring(store)
        begin.wait()
        found.append(ring.key_for("workflow:a").id)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1
    assert len(list(store.files(DATA_KEYS))) == len(list(store.files(LOOKUPS))) == 1


def test_a_new_key_is_told_in_the_trail_by_its_id_only():
    store = encrypted_store()
    with service(store, session="s-1") as opened:
        opened.create_checkpoint("W-secret-name", {"n": 1})
    entries = [decode_entry(line, None) for line in store.trail("s-1")]
    made = [entry for entry in entries if entry.type == "KEY_CREATED"]
    assert [entry.facts["key"] for entry in made] == [
        name.removeprefix(DATA_KEYS) for name in store.files(DATA_KEYS)
    ]
    assert [entry.workflow_id for entry in made] == [None]


def test_a_destroyed_key_is_gone_here_and_stops_working_elsewhere_within_a_second():
    store, time = encrypted_store(), Time()
    ring, elsewhere = keyring(store), keyring(store, clock=time)
    key_id = elsewhere.key_for("workflow:a").id
    assert destroy(store, ring, "workflow:a") == key_id
    with pytest.raises(KeyDestroyedError):
        ring.key(key_id)
    assert elsewhere.key(key_id).id == key_id
    time.seconds = rings.RECHECK_SECONDS
    with pytest.raises(KeyDestroyedError):
        elsewhere.key(key_id)
    assert elsewhere.find("workflow:a") is None and ring.destruction("workflow:a") is None
    assert elsewhere.key_for("workflow:a").id != key_id


def test_a_key_is_destroyed_once_only_and_others_stay():
    store = encrypted_store()
    ring = keyring(store)
    stays = ring.key_for("workflow:b").id
    before = {name: store.file(name) for name in store.files("keys/")}
    ring.key_for("workflow:a")
    going = ring.destruction("workflow:a")
    assert going is not None
    put(store, going.files, going.expected_files)
    [outcome] = store.commit(
        [Commit(NO_WORKFLOW, Head(), files=going.files, expected_files=going.expected_files)]
    )
    assert outcome is not None
    after = {name: store.file(name) for name in store.files("keys/") if "/gone/" not in name}
    assert after == before
    assert keyring(store).key(stays).scope == "workflow:b"


def test_a_process_remembers_a_bounded_number_of_keys(monkeypatch):
    monkeypatch.setattr(rings, "CACHE_MAX", 3)
    ring = keyring(encrypted_store())
    ids = [ring.key_for(f"workflow:{number}").id for number in range(6)]
    assert len(ring._keys) == len(ring._scopes) == 3
    assert [ring.key_for(f"workflow:{number}").id for number in range(6)] == ids


def test_without_a_key_a_keyring_is_locked_and_says_where_its_key_was():
    ring = Keyring(encrypted_store(), Xaes256Gcm())
    assert ring.is_locked
    for asked in (ring.unlock, lambda: ring.key_for("workflow:a"), lambda: ring.key("0" * 32)):
        with pytest.raises(KeyUnavailableError, match="last found in given"):
            asked()


def test_a_wrong_key_opens_nothing():
    ring = Keyring(encrypted_store(), Xaes256Gcm(), [GivenKey(NEW_KEY)])
    with pytest.raises(KeyUnavailableError, match=r"is not the one this store.*last found in given"):
        ring.unlock()


def test_a_wrapped_key_that_was_changed_or_put_in_anothers_place_is_refused():
    store = encrypted_store()
    ring = keyring(store)
    one, two = ring.key_for("workflow:a"), ring.key_for("workflow:b")
    mine, other = store.file(data_key_name(one.id)), store.file(data_key_name(two.id))
    put(store, {data_key_name(one.id): other})
    with pytest.raises(SealBrokenError, match="was changed"):
        keyring(store).key(one.id)
    put(store, {data_key_name(one.id): mine, one.lookup: two.id.encode()})
    with pytest.raises(SealBrokenError, match="a key of something else"):
        keyring(store).key_for("workflow:a")


@pytest.mark.parametrize("key_id", ["", "../x", "A" * 32, "0" * 31])
def test_what_names_no_key_is_refused_before_the_store_is_asked(key_id):
    with pytest.raises(SealBrokenError, match="names no key"):
        keyring(encrypted_store()).key(key_id)


def test_a_keyring_that_is_gone_damaged_or_of_another_cipher_is_told():
    store = encrypted_store()
    found = KeyringFile.decode(store.file(KEYRING))
    put(store, {KEYRING: replace(found, algorithm="ROT13").encode()})
    with pytest.raises(ConfigError, match="ROT13"):
        keyring(store)
    [check] = found.wrappings
    broken = replace(found.wrappings[check], index=bytes(72))
    put(store, {KEYRING: replace(found, wrappings={check: broken}).encode()})
    with pytest.raises(SealBrokenError, match="index key"):
        keyring(store)
    put(store, {KEYRING: None})
    with pytest.raises(CheckpointCorruptError, match="is gone"):
        keyring(store)


def test_a_key_that_was_replaced_where_it_is_fetched_from_is_found_again():
    store = encrypted_store()
    source = GivenKey()
    ring = Keyring(store, Xaes256Gcm(), [source])
    ring.unlock()
    from holdfast.application.secrecy.key_rotation import Rotation

    Rotation(store, keyring(store)).run(GivenKey(NEW_KEY))
    source.material = NEW_KEY
    key = ring.key_for("workflow:new")
    assert keyring(store, NEW_KEY).key_for("workflow:new").id == key.id


def test_every_key_of_a_scope_is_destroyed_and_a_tombstone_counts() -> None:
    store = encrypted_store()
    ring = keyring(store)
    first = ring.key_for("subject:ann")
    # As a copy leaves it that made a key of its own: another key, and the lookup names that one.
    lookup = first.lookup
    store.commit([Commit(NO_WORKFLOW, Head(), files={lookup: None})])
    second = keyring(store).key_for("subject:ann")
    assert first.id != second.id
    going = keyring(store).destruction("subject:ann")
    assert going is not None and set(going.key_ids) == {first.id, second.id}
    store.commit([Commit(NO_WORKFLOW, Head(), files={tombstone_name(second.id): b""})])
    with pytest.raises(KeyDestroyedError):
        keyring(store).key(second.id)
