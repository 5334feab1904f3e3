"""Every connection commits with a sync, and a server that will not do is refused."""

from __future__ import annotations

import psycopg
import pytest

from holdfast.adapters.postgres import session
from holdfast.adapters.postgres.address import read_address
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.domain.errors import UnsupportedVersionError
from tests.adapters.postgres import server


def setting(store, name):
    [(value,)] = store._database.rows("select current_setting(:name)", {"name": name})
    return value


def test_a_server_that_would_not_sync_is_told_to():
    lax = server.url(options="-c synchronous_commit=off")
    store = PostgresStore.open(lax)
    assert setting(store, "synchronous_commit") == "on"
    store.close()


@pytest.mark.parametrize("choice", ["local", "remote_apply"])
def test_how_a_commit_is_synced_is_the_administrators_choice(choice):
    store = PostgresStore.open(server.url(options=f"-c synchronous_commit={choice}"))
    assert setting(store, "synchronous_commit") == choice
    store.close()


def test_settings_of_the_database_do_not_change_what_a_commit_means():
    strict = "-c default_transaction_isolation=serializable -c default_transaction_read_only=on"
    store = PostgresStore.open(server.url(options=strict))
    assert setting(store, "default_transaction_isolation") == "read committed"
    assert setting(store, "default_transaction_read_only") == "off"
    store.close()


def test_the_schema_may_have_any_name():
    address = read_address(server.url(schema='we "quote" it'))
    with psycopg.connect(**server.parameters()) as connection:
        session.configure(connection, address, read_only=True)
        [(path,)] = connection.execute("show search_path").fetchall()
    assert path == '"we ""quote"" it"'


def test_a_server_that_is_too_old_is_refused(monkeypatch):
    monkeypatch.setattr(session, "VERSION_MIN", 990000)
    with pytest.raises(UnsupportedVersionError, match="at least 99 is needed"):
        PostgresStore.open(server.url())


def test_a_database_that_cannot_hold_every_text_is_refused():
    with psycopg.connect(**server.parameters(), autocommit=True) as connection:
        connection.execute("create database narrow encoding 'LATIN1' template template0")
    with pytest.raises(UnsupportedVersionError, match="LATIN1"):
        PostgresStore.open(server.at(server.parameters()["host"], database="narrow"))
