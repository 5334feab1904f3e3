"""The schema is brought up to date by one of many, whole or not at all; a newer one is refused."""

from __future__ import annotations

import threading

import pytest

from holdfast.adapters.postgres import store as store_module
from holdfast.adapters.postgres.store import PACKAGE, PostgresStore
from holdfast.adapters.sql.migrations import Migration, read_migrations
from holdfast.conformance.history import History
from holdfast.domain.errors import MigrationFailedError, StoreNotFoundError, UnsupportedVersionError
from tests.adapters.postgres import server

KNOWN = read_migrations(PACKAGE)


def only(monkeypatch, migrations):
    """Be a program that knows these migrations."""
    monkeypatch.setattr(store_module, "read_migrations", lambda _: list(migrations))


def test_migrations_are_numbered_without_gaps():
    assert [migration.version for migration in KNOWN] == list(range(1, len(KNOWN) + 1))


@pytest.mark.parametrize("version", range(1, len(KNOWN)))
def test_a_store_of_an_older_program_is_brought_up_to_date_with_all_it_holds(version, monkeypatch):
    url = server.url()
    with monkeypatch.context() as patch:
        only(patch, KNOWN[:version])
        old = PostgresStore.open(url)
        history = History(old)
        history.commit(keyframe=b"one")
        old.close()
    with pytest.raises(UnsupportedVersionError, match="for writing"):
        PostgresStore.open(url, read_only=True)
    new = PostgresStore.open(url)
    assert [row[0] for row in new._database.applied()] == [migration.version for migration in KNOWN]
    assert new.head("W") == history.head
    history.store = new
    history.commit()
    new.close()


def test_a_store_of_a_newer_program_is_refused(store, url):
    with server.connected(url) as administrator:
        administrator.execute("insert into schema_migrations values (99, 'future', 'sha256:x', 'then')")
    for options in ({}, {"read_only": True}):
        with pytest.raises(UnsupportedVersionError, match="schema 99"):
            PostgresStore.open(url, **options)


def test_a_store_that_another_program_made_is_refused(store, url):
    with server.connected(url) as administrator:
        administrator.execute("update schema_migrations set checksum = 'sha256:x' where version = 1")
    with pytest.raises(MigrationFailedError, match="not the one"):
        PostgresStore.open(url)


def test_a_step_that_fails_leaves_nothing_behind(store, url, monkeypatch):
    broken = Migration(len(KNOWN) + 1, "broken", "create table half (n integer); select 1/0;")
    only(monkeypatch, [*KNOWN, broken])
    with pytest.raises(MigrationFailedError, match="division by zero"):
        PostgresStore.open(url)
    with pytest.raises(StoreNotFoundError):
        store._database.rows("select * from half")
    only(monkeypatch, KNOWN)
    PostgresStore.open(url).close()


def test_many_that_create_one_store_at_once_make_it_once():
    url = server.url()
    start = threading.Barrier(6)
    problems = []

    def work(number):
        start.wait()
        try:
            store = PostgresStore.open(url)
            History(store, f"W{number}").commit()
            store.close()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    store = PostgresStore.open(url)
    assert len(list(store.workflows())) == 6
    assert len(store._database.applied()) == len(KNOWN)
    store.close()


def test_who_may_not_create_a_schema_may_use_one_that_was_made_for_them():
    with server.connected(server.url()) as administrator:
        administrator.execute("create schema for_guest authorization guest")
    store = PostgresStore.open(server.at(server.parameters()["host"], user="guest", schema="for_guest"))
    History(store).commit()
    store.close()
