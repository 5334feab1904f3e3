"""Holds and declarations come along with every copy, and mean the same in the target."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from holdfast.adapters.crypto.cipher import Xaes256Gcm
from holdfast.adapters.memory import MemoryStore
from holdfast.application.holding import FOLDER as HOLDS
from holdfast.application.secrecy.keyring import Keyring
from holdfast.application.secrecy.sealing import Vault
from holdfast.application.service import CheckpointService
from holdfast.application.subjects import FOLDER, SECRET
from holdfast.application.transport.people_transport import (
    PeopleCopy,
    bring_people,
    check_people,
    plan_people,
)
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointWriteError,
    ConfigError,
    LegalHoldError,
)
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.domain.trail import decode_entry
from holdfast.ports import Store
from holdfast.testing import FailingStore
from tests.application.copies import copy
from tests.application.logs import make_desk, outcomes
from tests.encrypted import encrypted_store, service, vault


def plain(store: Store) -> CheckpointService:
    return service(store, encryption_key=None)


def files(store: Store, prefix: str = "") -> dict[str, bytes | None]:
    prefixes = [prefix] if prefix else [HOLDS, FOLDER, SECRET]
    return {name: store.file(name) for one in prefixes for name in store.files(one)}


def put(store: Store, name: str, data: bytes | None) -> None:
    outcomes(store.commit([Commit(NO_WORKFLOW, Head(), files={name: data})]))


@pytest.fixture
def source() -> MemoryStore:
    store = MemoryStore()
    with plain(store) as opened:
        opened.create_checkpoint("W", {"n": 1})
        opened.create_checkpoint("V", {"n": 1})
        opened.subjects.declare("W", "ann")
        opened.holds.place(subject="ann", reason="case 17")
        opened.holds.place(workflow_id="V", reason="case 18")
    return store


def test_everything_comes_along_even_with_one_workflow(source: MemoryStore) -> None:
    target = MemoryStore()
    assert copy(source, target, "W").people == PeopleCopy(2, 1)
    assert files(target) == files(source)
    with plain(target) as opened:
        assert opened.subjects.known("ann").workflows == ("W",)
        with pytest.raises(LegalHoldError, match="case 17"):
            opened.erasure.workflow("W", reason="request 1")
    assert copy(source, target).people == PeopleCopy()


def test_it_is_told_in_the_trail_of_the_target(source: MemoryStore) -> None:
    desk = make_desk()
    copy(source, desk.store, tell=lambda type, name, facts: desk.trail.told(type, facts=facts)[0])
    told = [decode_entry(line, None).facts for line in desk.store.leaves()]
    assert {"holds": 2, "subjects": 1} in told


def test_a_plan_tells_what_would_come_and_changes_nothing(source: MemoryStore) -> None:
    target = MemoryStore()
    assert plan_people(source, target) == PeopleCopy(2, 1)
    assert files(target) == {}


def test_what_both_declare_is_united(source: MemoryStore) -> None:
    target = MemoryStore()
    bring_people(source, target)
    for store, workflow_id in ((source, "X"), (target, "Y")):
        with plain(store) as opened:
            opened.subjects.declare(workflow_id, "ann")
    assert bring_people(source, target) == PeopleCopy(0, 1)
    with plain(target) as opened:
        assert opened.subjects.known("ann").workflows == ("W", "Y", "X")
        # What was written is what the service itself would have written.
        opened.subjects.declare("Z", "ann")
    assert bring_people(source, target) == PeopleCopy()


def test_a_hold_that_was_released_in_the_source_stands_in_the_target(source: MemoryStore) -> None:
    target = MemoryStore()
    bring_people(source, target)
    with plain(source) as opened:
        for hold in opened.holds.listing():
            opened.holds.release(hold.id, reason="over")
    bring_people(source, target)
    assert len(files(target, HOLDS)) == 2


def test_another_secret_is_refused_if_anybody_is_named(source: MemoryStore) -> None:
    target, nobody = MemoryStore(), MemoryStore()
    put(target, SECRET, b"another")
    with pytest.raises(ConfigError, match="different secrets"):
        copy(source, target)
    assert list(target.workflows()) == []
    for name in files(source, FOLDER):
        put(source, name, None)
    with pytest.raises(ConfigError, match="different secrets"):
        check_people(source, target)
    with plain(nobody) as opened:
        opened.subjects.pseudonym("ann")
        opened.holds.place(workflow_id="W", reason="case 19")
    assert bring_people(nobody, target) == PeopleCopy(1, 0)
    assert target.file(SECRET) == b"another"
    put(nobody, f"{HOLDS}damaged", b"?")
    with pytest.raises(ConfigError, match="different secrets"):
        check_people(nobody, target)


def test_another_hold_of_the_same_name_is_refused(source: MemoryStore) -> None:
    target = MemoryStore()
    put(target, next(iter(files(source, HOLDS))), b"{}\n")
    with pytest.raises(CheckpointConflictError, match="another hold of this name"):
        bring_people(source, target)


def test_who_was_erased_in_the_target_comes_back_only_with_something_new(source: MemoryStore) -> None:
    for name in files(source, HOLDS):
        put(source, name, None)
    target = MemoryStore()
    copy(source, target)
    with plain(target) as opened:
        opened.erasure.subject("ann", reason="request 2")
    assert bring_people(source, target) == PeopleCopy()
    with plain(source) as opened:
        opened.subjects.declare("new", "ann")
    assert bring_people(source, target) == PeopleCopy(0, 1)
    with plain(target) as opened:
        assert opened.subjects.known("ann").workflows == ("new",)


def test_a_damaged_declaration_arrives_as_it_is_and_replaces_none(source: MemoryStore) -> None:
    target = MemoryStore()
    [name] = files(source, FOLDER)
    whole = source.file(name)
    put(source, name, b"damaged")
    bring_people(source, target)
    assert target.file(name) == b"damaged"
    put(source, name, whole)
    assert bring_people(source, target).kept == (name.removeprefix(FOLDER),)
    assert target.file(name) == b"damaged"


class Racing(FailingStore):
    """Is changed by somebody else just before the first commits."""

    def __init__(self, changes: Sequence[tuple[str, bytes]]) -> None:
        super().__init__(MemoryStore())
        self.changes = list(changes)

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        coming = {name for commit in commits for name in commit.files}
        for change in [change for change in self.changes if change[0] in coming]:
            self.changes.remove(change)
            super().commit([Commit(NO_WORKFLOW, Head(), files=dict([change]))])
        return super().commit(commits)


def test_what_somebody_declares_meanwhile_is_not_lost(source: MemoryStore) -> None:
    [name] = files(source, FOLDER)
    target = Racing([(name, b'{"subject": "ann", "workflows": ["Y"]}\n')])
    bring_people(source, target)
    assert target.file(name) == b'{"subject": "ann", "workflows": ["Y", "W"]}\n'


def test_a_secret_that_somebody_makes_meanwhile_is_noticed(source: MemoryStore) -> None:
    target = Racing([(SECRET, b"another")])
    with pytest.raises(ConfigError, match="different secrets"):
        bring_people(source, target)
    assert files(target) == {SECRET: b"another"}


def test_somebody_who_never_pauses_is_given_up_on(source: MemoryStore) -> None:
    [name] = files(source, FOLDER)
    changes = [(name, b'{"subject": "ann", "workflows": ["%d"]}\n' % number) for number in range(200)]

    class Restless(Racing):
        def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
            held, self.changes = self.changes[1:], self.changes[:1]
            result = super().commit(commits)
            self.changes += held
            return result

    with pytest.raises(CheckpointConflictError, match="without pause"):
        bring_people(source, Restless(changes))


def test_a_target_that_fails_ends_it(source: MemoryStore) -> None:
    class Broken(FailingStore):
        def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
            return [CheckpointWriteError("the disk is full") for _ in commits]

    with pytest.raises(CheckpointWriteError):
        bring_people(source, Broken(MemoryStore()))


@pytest.fixture
def sealed() -> MemoryStore:
    store = encrypted_store()
    with service(store) as opened:
        opened.create_checkpoint("W", {"n": 1})
        opened.subjects.declare("W", "ann")
    return store


def grow(store: Store, workflow_id: str) -> None:
    with service(store) as opened:
        opened.subjects.declare(workflow_id, "ann")


def declared(store: Store) -> tuple[str, ...]:
    with service(store) as opened:
        return opened.subjects.known("ann").workflows


def test_sealed_declarations_are_united_with_the_key(sealed: MemoryStore) -> None:
    target = MemoryStore()
    copy(sealed, target, vault=vault(sealed))
    assert files(target) == files(sealed)
    grow(sealed, "X")
    grow(target, "Y")
    assert copy(sealed, target, vault=vault(sealed)).people == PeopleCopy(0, 1)
    assert declared(target) == ("W", "Y", "X")
    assert copy(sealed, target, vault=vault(sealed)).people == PeopleCopy()


def test_without_the_key_the_declaration_of_the_target_is_kept_and_that_is_said(sealed: MemoryStore) -> None:
    target = MemoryStore()
    locked = Vault(Keyring(sealed, Xaes256Gcm()))
    copy(sealed, target, vault=locked)
    assert declared(target) == ("W",)
    grow(sealed, "X")
    [name] = files(target, FOLDER)
    assert copy(sealed, target, vault=locked).people.kept == (name.removeprefix(FOLDER),)
    assert bring_people(sealed, target).kept == (name.removeprefix(FOLDER),)
    assert declared(target) == ("W",)


def test_who_was_erased_with_the_key_does_not_come_back(sealed: MemoryStore) -> None:
    target = MemoryStore()
    copy(sealed, target, vault=vault(sealed))
    with service(target) as opened:
        opened.erasure.subject("ann", reason="request 3")
    assert copy(sealed, target, "W").people == PeopleCopy()
    assert files(target, FOLDER) == {}


def test_a_damaged_sealed_declaration_arrives_where_nothing_is(sealed: MemoryStore) -> None:
    target = MemoryStore()
    [name] = files(sealed, FOLDER)
    put(sealed, name, b"damaged")
    assert copy(sealed, target, "W").people == PeopleCopy(0, 1)
    assert target.file(name) == b"damaged"
