"""Quarantine from the command line, from the damage to the last word on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run, damage_record
from tests.cli.encrypted import encrypted_store


@pytest.fixture
def damaged(store: Path, run: Run) -> tuple[Path, str, bytes]:
    """A store with a damaged checkpoint that was set aside, the name of the report, and the right bytes."""
    [path] = store.glob("checkpoints/*/wf-1*/*.deltas.jsonl")
    whole = path.read_bytes()
    damage_record(store, 2)
    told = run("validate", "--quarantine", "--json", "--store", store).data
    [name] = told["quarantined"]
    return store, name, whole


def test_the_whole_way_from_damage_to_release(run: Run, damaged: tuple[Path, str, bytes]):
    store, name, whole = damaged
    refused = run("show", "WF-1@2", "--state", "--store", store)
    assert refused.exit_code == Exit.CORRUPT and name in refused.err
    assert run("quarantine", "release", name, "--reason", "hope", "--store", store).exit_code == Exit.CORRUPT
    [path] = store.glob("checkpoints/*/wf-1*/*.deltas.jsonl")
    path.write_bytes(whole)
    released = run("quarantine", "release", name, "--reason", "from a backup", "--store", store)
    assert released.out == "Released WF-1@2: it may be restored again\n"
    assert run("show", "WF-1@2", "--state", "--store", store).exit_code == 0
    assert run("quarantine", "list", "--open", "--json", "--store", store).data == {"quarantined": []}
    told = run("audit", "log", "--json", "--store", store).out
    assert "CHECKPOINT_QUARANTINED" in told and "QUARANTINE_RELEASED" in told


def test_in_an_encrypted_store_the_evidence_is_as_unreadable_as_the_store(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    store = encrypted_store(run, monkeypatch, tmp_path)
    for path in store.glob("checkpoints/*/wf-1*/*.deltas.jsonl"):
        data = bytearray(path.read_bytes())
        data[-20] ^= 1
        path.write_bytes(data)
    assert run("validate", "--quarantine", "--store", store).exit_code == Exit.CORRUPT
    monkeypatch.delenv("HOLDFAST_ENCRYPTION_KEY")
    # Whoever has no key sees the damage too, and is told that nothing more can be set aside.
    told = run("validate", "--quarantine", "--json", "--store", store)
    assert told.exit_code == Exit.CORRUPT and "no key is configured" in told.data["not_set_aside"][0]
    [one] = run("quarantine", "list", "--json", "--store", store).data["quarantined"]
    assert one["place"] == "WF-1@3"
    run("quarantine", "show", one["name"], "--save", tmp_path / "out", "--store", store)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "out").iterdir())
    # A whole word, and no part of one that is hexadecimal: an id has that by chance.
    assert "café".encode() not in kept and b"done" not in kept and len(kept) == one["size_bytes"]
