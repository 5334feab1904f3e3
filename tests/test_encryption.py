"""Encrypted stores as others find them: every byte of each, with and without the key."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast import Personal
from holdfast.domain.errors import KeyUnavailableError, StateSizeWarning
from tests.adapters.postgres import server
from tests.encrypted import MARKER, OLD_KEY, latest

KEY = "env:TEST_ENCRYPTION_KEY"
NEEDLE = MARKER.encode()


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TEST_ENCRYPTION_KEY", OLD_KEY.hex())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def fill(opened: holdfast.CheckpointService, workflow_id: str = "W") -> None:
    """Record the marker wherever a caller can put it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StateSizeWarning)
        for n in range(30):
            state = {
                "n": n,
                "text": f"{MARKER} {n}",
                "grows": f"{MARKER} " * n * 40,
                "large": f"{MARKER} {n // 10} " * 2000,
                "raw": NEEDLE * 3,
                "person": Personal("alice", {"mail": MARKER}),
                f"key {MARKER}": 1,
            }
            opened.create_checkpoint(
                workflow_id,
                state,
                agent_id="agent",
                agent_state={"kept": MARKER},
                stage_id="stage",
                stage_state={"kept": MARKER},
                resume_handler=MARKER,
                agent_version=MARKER,
            )
    opened.append_event(workflow_id, "TOLD", {"what": MARKER}, cost={MARKER: 1})
    opened.record_decision(workflow_id, f"{MARKER} decided", rationale=MARKER, agent_id="agent")
    opened.fork_workflow(f"{workflow_id}@30", f"{workflow_id}-fork")
    opened.prune_checkpoints(workflow_id, retain_count=3, retain_days=0)
    opened.flush()


def bytes_below(folder: Path) -> Iterator[tuple[str, bytes]]:
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root) / name
            yield str(path.relative_to(folder)), path.read_bytes()


def assert_hidden(folder: Path) -> None:
    found = [name for name, data in bytes_below(folder) if NEEDLE in data or NEEDLE in name.encode()]
    assert found == []


@pytest.mark.parametrize("scheme", ["file", "sqlite"])
def test_no_byte_of_a_store_in_files_tells_what_was_recorded(tmp_path, scheme):
    url = f"{scheme}:{tmp_path / 'kept' / 'store'}"
    (tmp_path / "kept").mkdir()
    with holdfast.open(url, encrypt=True, encryption_key=KEY) as opened:
        fill(opened)
        # While it is used: what waits in the journal, the write-ahead log, is among these.
        assert_hidden(tmp_path / "kept")
        assert latest(opened, "W")["text"] == f"{MARKER} 29"
    assert_hidden(tmp_path / "kept")
    with holdfast.open(url, encryption_key=KEY) as opened:
        assert latest(opened, "W")["person"] == Personal("alice", {"mail": MARKER})
        assert latest(opened, "W-fork")["raw"] == NEEDLE * 3
        assert opened.events("W", type="TOLD")[0].data == {"what": MARKER}


def test_without_encryption_the_search_finds_it(tmp_path):
    """The control: the search above can fail."""
    with holdfast.open(str(tmp_path / "kept")) as opened:
        opened.create_checkpoint("W", {"text": MARKER})
    with pytest.raises(AssertionError):
        assert_hidden(tmp_path / "kept")


def test_no_row_of_a_store_in_postgresql_tells_what_was_recorded():
    url = server.url()
    with holdfast.open(url, encrypt=True, encryption_key=KEY) as opened:
        fill(opened)
    with server.connected(url) as connection:
        [(schema,)] = connection.execute("select current_schema()").fetchall()
        tables = connection.execute(
            "select tablename from pg_tables where schemaname = current_schema()"
        ).fetchall()
        assert tables
        for (table,) in tables:
            with connection.cursor().copy(f'copy "{schema}"."{table}" to stdout (format binary)') as rows:
                dump = b"".join(bytes(piece) for piece in rows)
            assert NEEDLE not in dump, table
    with holdfast.open(url, encryption_key=KEY) as opened:
        assert latest(opened, "W")["text"] == f"{MARKER} 29"


@pytest.mark.parametrize("scheme", ["file", "sqlite"])
def test_without_the_key_listings_chains_and_the_trail_are_checked_and_states_are_not_read(tmp_path, scheme):
    url = f"{scheme}:{tmp_path / 'store'}"
    with holdfast.open(url, encrypt=True, encryption_key=KEY, session="s-1") as opened:
        fill(opened)
        opened.audit.keeper.anchor(create_key=True)
    with holdfast.open(url, read_only=True) as opened:
        assert opened.workflows() == ["W", "W-fork"]
        metas = opened.list_checkpoints("W")
        assert metas[0].size_bytes > 0 and metas[0].agent_id == "agent"
        for meta in metas:
            assert opened.validate_checkpoint(meta.id).valid
        assert opened.audit.verify_chain_integrity("s-1") == (True, None)
        for ask in (opened.load_latest, opened.events):
            with pytest.raises(KeyUnavailableError, match="no key is configured"):
                ask("W")


def test_a_store_in_files_is_rebuilt_without_its_key(tmp_path):
    place = tmp_path / "store"
    with holdfast.open(str(place), encrypt=True, encryption_key=KEY) as opened:
        fill(opened)
        before = opened.list_checkpoints("W")
        opened._engine.kit.store.settle()
    for manifest in place.glob("checkpoints/*/*/manifest.jsonl"):
        manifest.unlink()
    with holdfast.open(str(place), encryption_key=KEY) as opened:
        assert opened.list_checkpoints("W") == before
        assert latest(opened, "W")["n"] == 29
