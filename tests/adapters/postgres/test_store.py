"""The whole of the promise, on a real server; and what only this store does."""

from __future__ import annotations

import subprocess

import psycopg
import pytest

from holdfast.adapters.postgres import programs
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.adapters.sql.database import NOTHING
from holdfast.conformance.history import History, blob_name, make_keyframe
from holdfast.conformance.store import StoreConformance
from holdfast.conformance.trailing import about_the_store, told
from holdfast.domain.errors import StoreClosedError, StoreNotFoundError, StoreReadOnlyError
from holdfast.domain.payload import encode_payload
from holdfast.domain.record import Removal
from holdfast.ports import Store
from tests.adapters.postgres import server


class TestPostgresConformance(StoreConformance):
    def open_store(self) -> Store:
        self.url = server.url()
        return PostgresStore.open(self.url)

    def reopen(self, store: Store) -> Store:
        store.close()
        return PostgresStore.open(self.url)


def filled(store):
    """A store with something of everything."""
    data = b"blob" * 5000
    history = History(store)
    history.commit(keyframe=b"one", blobs={blob_name(data): data}, stage="s", phase=1)
    history.commit(token=store.acquire("W", "ann", 3600).token)
    store.put_keyframe("W", make_keyframe(2, b"two", blobs=(blob_name(data),)))
    other = History(store, "caf\u00e9 \U0001f980")
    other.commit()
    other.commit(group=2)
    removal = Removal(sequences=(1,), groups=(1,), events_through=1, audit=(told(1, "caf\u00e9"),))
    store.remove(other.workflow_id, removal)
    payload = encode_payload({"why": "because"}, bytes(32))
    store.commit([about_the_store(told(2), told(3, stored=payload), files={"keys/a.json": b"a"})])
    store.integrate()
    store.commit([about_the_store(told(4))])
    return history


def contents(store):
    """Everything a store tells."""
    trails = {
        name: [(line, store.payload(name, seq), store.place(name, seq)) for seq, line in numbered]
        for name in store.sessions()
        for numbered in [list(enumerate(store.trail(name), start=1))]
    }
    files = {name: store.file(name) for name in store.files("")}
    return trails, files, list(store.leaves()), list(store.waiting()), workflows(store)


def workflows(store):
    """What a store tells about workflows."""
    return {
        workflow_id: (
            store.head(workflow_id),
            list(store.entries(workflow_id)),
            list(store.events(workflow_id)),
            [(frame, store.keyframe(workflow_id, frame.sequence)) for frame in store.keyframes(workflow_id)],
            [store.blob(sha256) for entry in store.entries(workflow_id) for sha256 in entry.blobs],
            store.lease(workflow_id),
        )
        for workflow_id in store.workflows()
    }


def test_the_order_of_a_database_does_not_matter():
    with psycopg.connect(**server.parameters(), autocommit=True) as administrator:
        has_builtin = administrator.info.server_version >= 170000
        locale = "locale_provider builtin locale 'C.UTF-8'" if has_builtin else "locale 'POSIX'"
        administrator.execute(f"create database ordered template template0 {locale}")
    store = PostgresStore.open(server.at(server.parameters()["host"], database="ordered"))
    names = ("a", "A", "b", "\u00e4", "z", "\u00df", "a-b", "a b", "ab")
    assert store.commit([History(store, name).draft() for name in names]) == [None] * len(names)
    assert sorted(store.workflows()) == sorted(names)
    for name in names:
        entry = next(store.entries(name))
        assert [found for found, _ in store.find(entry.uuid)] == [name]
        History(store, name).commit()
    store.close()


def test_stores_in_two_schemas_of_a_database_know_nothing_of_each_other(store):
    other = PostgresStore.open(server.url(schema="An other; schema"))
    History(store).commit()
    assert list(other.workflows()) == []
    assert "schema=An%20other%3B%20schema" in other.url
    other.close()


def test_a_store_that_is_not_there_is_not_made_unless_asked_for():
    url = server.url()
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(StoreNotFoundError):
            PostgresStore.open(url, **options)
    PostgresStore.open(url).close()
    PostgresStore.open(url, create=False).close()


def test_who_opens_it_for_reading_sees_everything_and_changes_nothing(store, url):
    filled(store)
    reader = PostgresStore.open(url, read_only=True)
    assert reader.read_only and not store.read_only
    assert contents(reader) == contents(store)
    for call in (
        lambda: reader.put_keyframe("W", make_keyframe(1, b"one")),
        lambda: reader.remove("W", Removal(sequences=(1,))),
        lambda: reader.commit([about_the_store(told(1))]),
        lambda: reader.acquire("W", "bob", 1, (told(1),)),
    ):
        with pytest.raises(StoreReadOnlyError):
            call()
    assert [finding for finding in reader.check() if finding.harm] == []
    reader.settle()
    assert reader.stats()["workflows"] == 2
    reader.close()
    with pytest.raises(StoreClosedError):
        reader.settle()


def test_a_server_that_does_not_sync_is_told_by_a_check(store, monkeypatch):
    rows = type(store._database).rows

    def lies(self, sql, parameters=NOTHING):
        return [("off",)] if "fsync" in sql else rows(self, sql, parameters)

    monkeypatch.setattr(type(store._database), "rows", lies)
    [finding] = store.check()
    assert finding.place == "fsync" and not finding.harm


def test_a_dump_restored_elsewhere_is_the_same_store(store, url):
    history = filled(store)
    before = contents(store)
    schema = url.partition("schema=")[2].partition("&")[0]
    tools = programs.installations()[max(programs.installations())]
    known = server.parameters()
    to_server = ["--host", known["host"], "--username", known["user"]]
    dump = subprocess.run(
        [tools / "pg_dump", *to_server, "--schema", schema, known["dbname"]], capture_output=True, check=True
    ).stdout
    with psycopg.connect(**known, autocommit=True) as administrator:
        administrator.execute("create database elsewhere template template0")
    psql = [tools / "psql", *to_server, "--quiet", "--set", "ON_ERROR_STOP=1", "elsewhere"]
    subprocess.run(psql, input=dump, capture_output=True, check=True)
    restored = PostgresStore.open(server.at(known["host"], database="elsewhere", schema=schema), create=False)
    assert contents(restored) == before
    assert [finding for finding in restored.check() if finding.harm] == []
    again = History(restored)
    assert again.head == history.head
    lease = restored.lease("W")
    assert lease is not None
    again.commit(token=lease.token)
    with server.connected(url) as administrator:
        query = "select count(*), count(state) from workflow_checkpoints"
        rows = administrator.execute(query).fetchall()
    assert restored._database.rows(query)[0][0] == rows[0][0] + 1
    restored.close()
