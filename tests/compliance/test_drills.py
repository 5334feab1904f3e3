"""Drills: a backup that is restored, a full disk, a checkpoint whose bytes are wrong."""

from __future__ import annotations

import secrets
import shutil
import time
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.application.service import CheckpointService
from holdfast.bootstrap import build_kit
from holdfast.config import Config
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointWriteError,
    DiskFullError,
    StoreNotFoundError,
)
from holdfast.domain.ladder import Mode
from tests.compliance.openings import entries, open_service
from tests.crash.faulty_disk import Fault, FaultyDisk
from tests.crash.simulated_machine import Machine
from tests.crash.workload import open_on
from tests.process.evidence import keep


def test_a_restored_backup_has_the_same_root_and_the_same_states(url, tmp_path, capsys):
    with open_service(url) as service:
        for n in range(20):
            service.create_checkpoint("WF-1", {"n": n})
        service.audit.keeper.anchor(create_key=True)
    with open_service(url, read_only=True, audit=False) as service:
        before = service.audit.verify(payloads=True)
    path = Path(url.removeprefix("sqlite:"))
    (shutil.copytree if path.is_dir() else shutil.copy2)(path, tmp_path / "backup")
    (shutil.rmtree if path.is_dir() else Path.unlink)(path)
    with pytest.raises(StoreNotFoundError):
        open_service(url, create=False)

    begun = time.perf_counter()
    shutil.move(tmp_path / "backup", path)
    with open_service(url, read_only=True, audit=False) as service:
        after = service.audit.verify(payloads=True)
        state = service.load_latest("WF-1")
    seconds = time.perf_counter() - begun
    assert state is not None and state.context == {"n": 19}
    assert (after.head, after.level, after.faults) == (before.head, before.level, ())
    lost = before.entries - after.entries
    counts = {"recovery_seconds": round(seconds, 3), "lost_entries": lost, "entries": after.entries}
    keep("restore_drill", "sqlite" if url.startswith("sqlite:") else "file", counts, [])
    print(f"RTO {seconds:.3f} s, RPO {lost} entries of {before.entries}")
    assert "RPO 0 entries" in capsys.readouterr().out


def test_on_a_full_disk_reads_and_verification_go_on():
    fault = Fault("ENOSPC", 0, persistent=True, gone=True)
    store = open_on(FaultyDisk(Machine(), fault))
    kit = build_kit(store, Config(session="s-1", background=False, retain=False))
    service = CheckpointService(kit)
    for n in range(5):
        service.create_checkpoint("WF-1", {"n": n})
    fault.gone = False
    with pytest.raises(CheckpointWriteError):
        for n in range(5, 500):
            service.create_checkpoint("WF-1", {"n": n, "filler": "x" * 10_000})
    state = service.load_latest("WF-1")
    assert state is not None and state.context["n"] >= 4
    report = service.audit.verify(payloads=True)
    assert report.faults == () and report.entries >= 5
    fault.gone = True
    service.close()


def test_where_the_trail_is_strict_nobody_looks_at_what_cannot_tell_of_it():
    fault = Fault("ENOSPC", 0, persistent=True, gone=True)
    store = open_on(FaultyDisk(Machine(), fault))
    config = Config(session="s-1", background=False, retain=False, strict_audit=True)
    service = CheckpointService(build_kit(store, config))
    service.create_checkpoint("WF-1", {"n": 1})
    service.load_latest("WF-1")
    fault.gone = False
    with pytest.raises(DiskFullError):
        service.audit.verify()
    fault.gone = True
    service.close()


def test_a_checkpoint_whose_bytes_are_wrong_is_never_loaded_and_the_one_before_is(tmp_path):
    url = f"{tmp_path}/store"
    with open_service(url) as service:
        for n in range(3):
            service.create_checkpoint("WF-1", {"n": n, "mark": f"value-{n}"})
    for path in (tmp_path / "store").rglob("*"):
        if path.is_file() and b"value-2" in (data := path.read_bytes()):
            path.write_bytes(data.replace(b"value-2", b"value-X"))
    with warnings.catch_warnings(), open_service(url, "s-2") as service:
        warnings.simplefilter("ignore")
        with pytest.raises(CheckpointCorruptError):
            service.restore_checkpoint("WF-1@3")
        assert service.restore_checkpoint("WF-1@2").context["mark"] == "value-1"


def test_that_a_disk_gets_full_is_in_the_trail_before_it_is(tmp_path):
    url, free = f"{tmp_path}/store", iter([900_000, 600_000, 400_000, *[20_000] * 100])
    service = open_service(url)
    engine = service._engine
    engine.kit = replace(engine.kit, space=lambda: (10_000_000, next(free)))
    engine.begin()
    state = {"log": [""]}
    for _ in range(30):
        state["log"] = [secrets.token_hex(500) for _ in range(20)]
        assert service.create_checkpoint("WF-1", state).durable
    service.close()
    warned = [entry for entry in entries(url) if entry["type"] == "STORE_DEGRADED"]
    assert [entry["data"]["reason"] for entry in warned] == ["low_space"]
    assert warned[0]["data"]["free_bytes"] == 400_000


def test_a_disk_that_is_full_is_told_in_the_trail_and_so_is_its_end():
    fault = Fault("ENOSPC", 0, persistent=True, gone=True)
    store = open_on(FaultyDisk(Machine(), fault))
    config = Config(session="s-1", background=False, retain=False, on_fault="degrade")
    service = CheckpointService(build_kit(store, config))
    service.create_checkpoint("WF-1", {"n": 0})
    fault.gone = False
    receipts = [service.create_checkpoint("WF-1", {"n": n, "filler": "x" * 100}) for n in range(1, 50)]
    assert not receipts[-1].durable
    fault.gone = True
    for _ in range(8):
        service.flush()
    assert service.health().mode is Mode.FULL
    told = [event for event in service.audit.query_events() if event.type == "STORE_DEGRADED"]
    assert len(told) >= 2
    state = service.load_latest("WF-1")
    assert state is not None and state.context["n"] == 49
    assert service.audit.verify(payloads=True).faults == ()
    service.close()
