"""A server that comes with its first user and goes with its last."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from holdfast.adapters.postgres import embedded, programs
from holdfast.adapters.postgres.embedded import EmbeddedServer
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.conformance.history import History
from holdfast.domain.errors import (
    CheckpointReadError,
    CheckpointWriteError,
    DiskFullError,
    PermissionDeniedError,
    StoreNotFoundError,
)
from tests.adapters.postgres import server


@pytest.fixture
def folder():
    return server.embedded_folder()


def entered(folder):
    user = EmbeddedServer(str(folder))
    user.enter(create=False)
    return user


def answers(user):
    with psycopg.connect(**user.parameters()) as connection:
        return connection.execute("select 1").fetchone() == (1,)


def runs(user):
    return user._is_running()


@pytest.mark.sweep
def test_a_new_folder_becomes_a_durable_server_that_only_its_owner_reaches():
    user = EmbeddedServer(str(server.new_folder() / "not" / "yet" / "there"))
    user.enter(create=True)
    data = user._data
    with psycopg.connect(**user.parameters()) as connection:
        settings: dict[str, str] = dict(
            connection.execute("select name, setting from pg_settings").fetchall()
        )
    for name in ("fsync", "full_page_writes", "synchronous_commit", "data_checksums"):
        assert settings[name] == "on"
    assert settings["listen_addresses"] == ""
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert not data.with_name("data.new").exists()
    user.leave()


def test_the_last_user_to_leave_stops_the_server(folder):
    first, second = entered(folder), entered(folder)
    assert answers(first) and answers(second)
    first.leave()
    first.leave()
    assert answers(second)
    second.leave()
    assert not runs(second)


def test_a_server_that_died_is_started_by_whoever_needs_it(folder):
    user = entered(folder)
    os.kill(user.pid(), signal.SIGKILL)
    while runs(user):
        pass
    assert answers(user)
    user.leave()


def test_a_store_opens_on_it_and_keeps_everything(folder):
    url = f"postgresql+embedded:{folder}"
    store = PostgresStore.open(url)
    assert store.url == url
    history = History(store)
    history.commit(keyframe=b"one")
    store.close()
    store.close()
    assert not runs(EmbeddedServer(str(folder)))
    again = PostgresStore.open(url, read_only=True)
    assert again.head("W") == history.head
    again.close()


def test_closing_while_a_commit_waits_leaves_no_server_behind(folder):
    store = PostgresStore.open(f"postgresql+embedded:{folder}?lock_seconds=60")
    store.release(store.acquire("W", "ann", 1.0))
    draft = History(store).draft()
    own = store._database.connections._server
    assert own is not None
    known = own.parameters()
    with psycopg.connect(**known, autocommit=True) as administrator, ThreadPoolExecutor(1) as executor:
        # It waits for nobody: who ends before it, when the server does, would let it go on.
        administrator.execute(
            "create function holdfast.wait() returns trigger language plpgsql as "
            "$$ begin perform pg_sleep(600); return new; end $$"
        )
        administrator.execute(
            "create trigger wait before insert on holdfast.events "
            "for each row execute function holdfast.wait()"
        )
        committing = executor.submit(store.commit, [draft])
        while not administrator.execute(
            "select 1 from pg_stat_activity where wait_event = 'PgSleep'"
        ).fetchall():
            pass
        store.close()
        with pytest.raises(CheckpointWriteError, match="unknown"):
            committing.result()
    assert not runs(EmbeddedServer(str(folder))) and own._users is None


@pytest.mark.sweep
def test_a_process_that_ends_without_a_word_has_left(folder):
    program = """if True:
        import sys
        from holdfast.adapters.postgres.store import PostgresStore
        from holdfast.conformance.history import History
        store = PostgresStore.open(sys.argv[1])
        History(store).commit()
    """
    command = [sys.executable, "-W", "error", "-c", program, f"postgresql+embedded:{folder}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not runs(EmbeddedServer(str(folder)))


def test_settings_for_other_servers_do_not_matter(folder, monkeypatch):
    for name, value in {"PGPORT": "1", "PGDATA": "/nowhere", "PGHOST": "nowhere", "LC_ALL": "xx"}.items():
        monkeypatch.setenv(name, value)
    user = entered(folder)
    assert answers(user)
    user.leave()


def test_a_folder_that_was_deleted_can_be_left(folder):
    user = entered(folder)
    os.kill(user.pid(), signal.SIGKILL)
    while runs(user):
        pass
    shutil.rmtree(folder)
    user.leave()
    assert user._users is None


def test_a_child_lets_the_parents_lock_be_and_enters_anew(folder):
    parent, child = entered(folder), entered(folder)
    child.forget()
    child.forget()
    assert answers(child)
    parent.leave()
    assert answers(child)
    child.leave()
    assert not runs(child)


def test_a_path_too_long_for_a_socket_is_no_hindrance():
    folder = server.embedded_folder()
    deep = folder.with_name("d" * 120)
    folder.rename(deep)
    user = entered(deep)
    assert answers(user)
    user.leave()


def test_a_folder_in_one_that_others_may_not_enter_is_no_hindrance(folder):
    """Least of all for root, who must leave the serving to another user."""
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    user = entered(folder)
    assert answers(user)
    assert user._data.stat().st_uid == (os.geteuid() or programs.owner_of(user._data)[0]) != 0
    user.leave()


def test_where_nothing_is_nothing_is_made_unless_asked_for(tmp_path):
    place = tmp_path / "nothing"
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(StoreNotFoundError):
            PostgresStore.open(f"postgresql+embedded:{place}", **options)
    assert not place.exists()


def test_the_mark_of_a_dead_server_whose_number_is_taken_does_not_stop_the_next(folder):
    mark = folder / "data" / "postmaster.pid"
    # A process that is alive, and is no server: this one.
    mark.write_text(f"{os.getpid()}\n/somewhere\n1\n5432\n.\n\n  1 2\nready\n")
    user = entered(folder)
    assert answers(user)
    user.leave()


@pytest.mark.sweep
def test_a_folder_that_was_half_made_is_made_anew(monkeypatch):
    folder = server.new_folder()
    (folder / "data.new").mkdir()
    (folder / "data.new" / "rest").write_text("of a killed process")
    user = EmbeddedServer(str(folder))
    user.enter(create=True)
    assert answers(user)
    user.leave()


def test_a_server_that_does_not_start_says_why(folder):
    with open(folder / "data" / "postgresql.conf", "a") as settings:
        settings.write("max_connections = none\n")
    user = EmbeddedServer(str(folder))
    with pytest.raises(CheckpointReadError, match="max_connections"):
        user.enter(create=False)
    assert user._users is None


def test_a_path_that_is_no_folder_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointReadError, match="cannot be used"):
        EmbeddedServer(str(tmp_path / "file" / "below")).enter(create=True)


def test_what_the_file_system_refuses_is_told():
    with pytest.raises(PermissionDeniedError), embedded._faults("here"):
        raise PermissionError(13, "Permission denied", "/there")
    error = embedded._failed("it fails", b"LOG: x\nFATAL: could not write: No space left on device\n", "r")
    assert isinstance(error, DiskFullError)


def test_a_log_does_not_grow_for_ever(folder, monkeypatch):
    monkeypatch.setattr(embedded, "_LOG_BYTES_MAX", 10)
    log = folder / "data" / embedded.SERVER_LOG
    before = log.read_bytes()
    entered(folder).leave()
    assert log.with_suffix(".old").read_bytes() == before
