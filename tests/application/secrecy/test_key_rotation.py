import threading

import pytest

from holdfast.application.secrecy.key_rotation import Rotation
from holdfast.domain.errors import CheckpointError, CheckpointWriteError, ConfigError, KeyUnavailableError
from holdfast.domain.keyring_file import DATA_KEYS, KEYRING, KeyringFile, WrappedKey
from holdfast.domain.trail import decode_entry
from tests.encrypted import (
    NEW_KEY,
    OLD_KEY,
    GivenKey,
    encrypted_store,
    keyring,
    latest,
    service,
    vault,
    vault_of,
)

THIRD_KEY = bytes(range(64, 96))


def rotate(store, new=NEW_KEY, *, knows=(OLD_KEY,)):
    return Rotation(store, keyring(store, *knows)).run(GivenKey(new, "new place"))


def wrapped_by(store):
    names = list(store.files(DATA_KEYS))
    return [set(WrappedKey.decode(store.file(name), name).wraps) for name in names]


def stored(store):
    """Give everything but the keyring."""
    workflow = store._workflows["W"]
    return (workflow.head, dict(workflow.records), list(workflow.events), dict(store._blobs))


def test_afterwards_the_new_key_opens_everything_and_the_old_one_nothing():
    store = encrypted_store()
    with service(store) as opened:
        opened.create_checkpoint("W", {"n": 1})
        opened.create_checkpoint("V", {"n": 1})
    before = stored(store)
    done = rotate(store)
    assert done.keys == 2 and done.old != done.new
    assert wrapped_by(store) == [{done.new}] * 2
    assert stored(store) == before
    with service(store, NEW_KEY) as opened:
        assert latest(opened, "W") == {"n": 1}
        assert opened.create_checkpoint("W", {"n": 2}).sequence == 2
    with pytest.raises(KeyUnavailableError):
        vault(store, OLD_KEY)
    found = KeyringFile.decode(store.file(KEYRING))
    assert found.wrappings[found.current].source == "new place"


def test_it_is_told_in_the_trail():
    store = encrypted_store()
    with service(store, session="s-1") as opened:
        opened.create_checkpoint("W", {"n": 1})
        done = opened.keys.rotate(GivenKey(NEW_KEY))
        assert opened.create_checkpoint("V", {"n": 1}).sequence == 1
    entries = [decode_entry(line, None) for line in store.trail("s-1")]
    [told] = [entry for entry in entries if entry.type == "KEY_ROTATED"]
    assert told.facts == {"from": done.old, "to": done.new, "keys": 1}


def test_a_process_that_knows_both_keys_works_before_during_and_after():
    store = encrypted_store()
    with service(store, OLD_KEY, NEW_KEY) as opened:
        opened.create_checkpoint("A", {"n": 1})
        rotate(store)
        assert opened.create_checkpoint("B", {"n": 1}).sequence == 1
        vault_of(opened).keyring.begin(None)
        assert latest(opened, "A") == {"n": 1}


def test_a_process_that_knows_the_old_key_only_is_told_so():
    store = encrypted_store()
    with service(store) as opened:
        opened.create_checkpoint("A", {"n": 1})
        rotate(store)
        with pytest.raises(KeyUnavailableError, match="rotated"):
            opened.create_checkpoint("B", {"n": 1})


class Crashing:
    """A store whose process dies at the n-th commit from now on."""

    def __init__(self, store, commits):
        self._store, self._left = store, commits

    def __getattr__(self, name):
        return getattr(self._store, name)

    def commit(self, commits):
        if not self._left:
            raise CheckpointWriteError("the process died here")
        self._left -= 1
        return self._store.commit(commits)


def test_interrupted_anywhere_everything_stays_readable_and_the_same_call_finishes():
    commits = 0
    while True:
        store = encrypted_store()
        ids = [keyring(store).key_for(f"workflow:{number}").id for number in range(3)]
        crashing = Crashing(store, commits)
        try:
            Rotation(crashing, keyring(crashing)).run(GivenKey(NEW_KEY))
        except CheckpointWriteError:
            both = keyring(store, OLD_KEY, NEW_KEY)
            assert [both.key(key_id).scope for key_id in ids] == [f"workflow:{number}" for number in range(3)]
            assert both.key_for("workflow:while").scope == "workflow:while"
        else:
            break
        done = rotate(store, knows=(OLD_KEY, NEW_KEY))
        assert all(wraps == {done.new} for wraps in wrapped_by(store))
        assert keyring(store, NEW_KEY).key(ids[0]).scope == "workflow:0"
        commits += 1
    assert commits >= 4


def test_what_makes_no_sense_is_refused():
    store = encrypted_store()
    with pytest.raises(ConfigError, match="already"):
        rotate(store, OLD_KEY)
    crashing = Crashing(store, 1)
    with pytest.raises(CheckpointWriteError):
        Rotation(crashing, keyring(crashing)).run(GivenKey(NEW_KEY))
    with pytest.raises(ConfigError, match="not finished"):
        rotate(store, THIRD_KEY)
    with pytest.raises(KeyUnavailableError):
        rotate(store, None)


def test_under_load_no_write_and_no_read_fails():
    store = encrypted_store()
    problems: list[CheckpointError] = []
    stop, counts = threading.Event(), [0, 0, 0, 0]

    def work(number):
        with service(store, OLD_KEY, NEW_KEY, retain=False) as opened:
            while not stop.is_set() or counts[number] < 3:
                counts[number] += 1
                workflow_id = f"W-{number}-{counts[number]}"
                try:
                    opened.create_checkpoint(workflow_id, {"n": counts[number]})
                    vault_of(opened).keyring.begin(None)
                    assert latest(opened, workflow_id) == {"n": counts[number]}
                except CheckpointError as problem:
                    problems.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    keys = [OLD_KEY, NEW_KEY]
    for turn in range(4):
        old, new = keys[turn % 2], keys[1 - turn % 2]
        Rotation(store, keyring(store, old)).run(GivenKey(new))
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []
    current = KeyringFile.decode(store.file(KEYRING)).current
    assert all(wraps == {current} for wraps in wrapped_by(store)) and len(wrapped_by(store)) == sum(counts)


class Busy(Crashing):
    """A store in which somebody who knows both keys makes a data key before every commit of the rotation."""

    def __init__(self, store):
        super().__init__(store, 0)
        self._others, self.made = keyring(store, OLD_KEY, NEW_KEY), 0

    def commit(self, commits):
        self.made += 1
        assert self.made < 20, "the rotation finds no end"
        self._others.key_for(f"workflow:meanwhile-{self.made}")
        return self._store.commit(commits)


def test_keys_made_meanwhile_neither_hold_it_up_nor_keep_the_old_key():
    store = encrypted_store()
    busy = Busy(store)
    done = Rotation(busy, keyring(busy)).run(GivenKey(NEW_KEY))
    assert wrapped_by(store) == [{done.new}] * busy.made and busy.made >= 4
    assert keyring(store, NEW_KEY).find("workflow:meanwhile-1") is not None


def test_a_key_destroyed_meanwhile_does_not_come_back():
    store = encrypted_store()
    ring = keyring(store)
    going_id = ring.key_for("workflow:going").id
    ring.key_for("workflow:staying")

    class Destroying(Crashing):
        def commit(self, commits):
            going = keyring(store).destruction("workflow:going") if self._left == 50 else None
            self._left -= 1
            if going is not None:
                from holdfast.domain.record import NO_WORKFLOW, Commit, Head

                self._store.commit([Commit(NO_WORKFLOW, Head(), files=going.files)])
            return self._store.commit(commits)

    destroying = Destroying(store, 51)
    done = Rotation(destroying, keyring(destroying)).run(GivenKey(NEW_KEY))
    assert done.keys == 1
    assert store.file(DATA_KEYS + going_id) is None
