import pytest

from holdfast.adapters.formats import Formats
from holdfast.adapters.memory import MemoryStore
from holdfast.adapters.packer import OrmsgpackPacker
from holdfast.application.transport.copying import Copier, Outcome
from holdfast.application.transport.key_transport import bring_keys, check_keyrings
from holdfast.domain.errors import ConfigError, KeyDestroyedError
from holdfast.domain.keyring_file import DATA_KEYS, KEYRING, TOMBSTONE, TOMBSTONES, tombstone_name
from holdfast.domain.plain import TypeRegistry
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.testing import FailingStore
from tests.application.secrecy.test_key_rotation import rotate
from tests.encrypted import MARKER, destroy, encrypted_store, latest, service, vault


def filled():
    store = encrypted_store()
    with service(store) as opened:
        opened.create_checkpoint("W", {"text": MARKER * 2000})
        opened.create_checkpoint("W", {"text": MARKER * 2000, "n": 1})
        opened.append_event("W", "TOLD", {"what": MARKER})
    return store


def copy(source, target, opened=None):
    copier = Copier(source, target, OrmsgpackPacker(TypeRegistry()), Formats(), vault=opened)
    return copier.copy(["W"])


def keys(store):
    return {name: store.file(name) for name in store.files("keys/")}


def test_ciphertext_is_copied_unchanged_and_its_keyring_goes_with_it():
    source, target = filled(), MemoryStore()
    result = copy(source, target, vault(source))
    assert [one.outcome for one in result.workflows] == [Outcome.COPIED]
    assert keys(target) == keys(source)
    assert list(target.records("W", 1, 2)) == list(source.records("W", 1, 2))
    assert list(target.events("W")) == list(source.events("W"))
    assert target._blobs == source._blobs
    with service(target) as opened:
        assert latest(opened, "W") == {"text": MARKER * 2000, "n": 1}


def test_a_copy_needs_no_key():
    from holdfast.adapters.crypto.cipher import Xaes256Gcm
    from holdfast.application.secrecy.keyring import Keyring
    from holdfast.application.secrecy.sealing import Vault

    source, target = filled(), MemoryStore()
    result = copy(source, target, Vault(Keyring(source, Xaes256Gcm())))
    assert [one.outcome for one in result.workflows] == [Outcome.COPIED]
    with service(target) as opened:
        assert latest(opened, "W")["n"] == 1


def test_a_copy_that_is_repeated_brings_new_keys_and_changes_none():
    source, target = filled(), MemoryStore()
    copy(source, target, vault(source))
    with service(source) as opened:
        opened.create_checkpoint("V", {"n": 1})
    copy(source, target, vault(source))
    assert keys(target) == keys(source)


def test_a_key_destroyed_in_the_target_does_not_come_back():
    source, target = filled(), MemoryStore()
    copy(source, target, vault(source))
    destroy(target, "workflow:W")
    bring_keys(source, target)
    with service(target) as opened, pytest.raises(KeyDestroyedError):
        opened.load_latest("W")


def test_stores_whose_keys_do_not_fit_are_refused():
    source, plain, used = filled(), MemoryStore(), MemoryStore()
    with service(used, encryption_key=None) as opened:
        opened.create_checkpoint("W", {"n": 1})
    with pytest.raises(ConfigError, match="keys of its own"):
        check_keyrings(source, encrypted_store())
    with pytest.raises(ConfigError, match="the target is encrypted and the source is not"):
        copy(plain, encrypted_store())
    with pytest.raises(ConfigError, match="holds data that is not"):
        copy(source, used)
    target = MemoryStore()
    copy(source, target, vault(source))
    rotate(source)
    with pytest.raises(ConfigError, match="wrapped by different keys"):
        check_keyrings(source, target)
    check_keyrings(plain, MemoryStore())
    bring_keys(plain, plain)
    assert plain.file(KEYRING) is None


def test_a_key_destroyed_while_it_is_on_its_way_does_not_come_back():
    source, target = filled(), MemoryStore()

    class Slow(FailingStore):
        def file(self, name):
            if name.startswith(DATA_KEYS):
                gone = {tombstone_name(name.removeprefix(DATA_KEYS)): TOMBSTONE}
                target.commit([Commit(NO_WORKFLOW, Head(), files=gone)])
            return super().file(name)

    bring_keys(Slow(source), target)
    assert not list(target.files(DATA_KEYS))
    assert len(list(target.files(TOMBSTONES))) == len(list(source.files(DATA_KEYS)))


def test_an_erasure_that_a_copy_brings_takes_the_key_and_leaves_the_workflow_to_go_on():
    source, target = filled(), MemoryStore()
    copy(source, target, vault(source))
    destroyed = set(target.files(DATA_KEYS))
    with service(source) as opened:
        opened.erasure.workflow("W", reason="request 32")
        opened.create_checkpoint("W", {"n": 2})
    copy(source, target, vault(source))
    assert not {*target.files(DATA_KEYS)} & {name for name in destroyed if source.file(name) is None}
    with service(target) as opened:
        with pytest.raises(KeyDestroyedError):
            opened.restore_checkpoint("W@1")
        opened.create_checkpoint("W", {"n": 3})
        assert latest(opened, "W") == {"n": 3}
        assert opened.restore_checkpoint("W@3").context == {"n": 2}


def test_a_workflow_goes_on_where_it_had_a_key_before_it_was_copied_there():
    source, target = encrypted_store(), MemoryStore()
    copy(source, target, vault(source))
    with service(target) as opened:
        opened._engine.writer.warm("W")
    with service(source) as opened:
        opened.create_checkpoint("W", {"n": 1})
    copy(source, target, vault(source))
    with service(target) as opened:
        opened.create_checkpoint("W", {"n": 2})
        opened.append_event("W", "TOLD", {"what": MARKER})
        opened.create_checkpoint("W", {"n": 3})
        assert [opened.restore_checkpoint(f"W@{n}").context["n"] for n in (1, 2, 3)] == [1, 2, 3]
