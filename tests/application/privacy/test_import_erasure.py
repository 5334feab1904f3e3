"""What is erased is erased from the trails that came along too, and those still verify."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.application.audit.export_source import ExportSource
from holdfast.application.audit.trail_copying import IMPORTS, write_import
from holdfast.application.privacy.import_erasure import without_payloads
from holdfast.application.service import CheckpointService
from holdfast.application.transport.copying import Copier
from holdfast.domain.log_check import Trust

MARK = "the-words-of-alice"


@pytest.fixture
def target(tmp_path: Path) -> CheckpointService:
    """A store that another one was copied into, trail and all."""
    with bootstrap.open(f"{tmp_path}/source", retain=False) as source:
        for workflow_id, words in (("W", MARK), ("V", "of bob")):
            source.create_checkpoint(workflow_id, {"said": words})
            source.record_decision(workflow_id, f"believe {words}")
        kept = bootstrap.open(f"{tmp_path}/target", retain=False, background=False)
        source.flush()
        kit, store = source._engine.kit, kept._engine.kit.store
        Copier(kit.store, store, kit.packer, kit.formats).copy(["W", "V"], with_trail=True)
    return kept


def held(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if MARK.encode() in path.read_bytes()]


def test_payloads_of_imported_trails_go_and_the_rest_verifies(
    target: CheckpointService, tmp_path: Path
) -> None:
    assert target.erasure.workflow("W", reason="request 22").payloads == 1
    assert held(tmp_path / "target") == []
    store = target._engine.kit.store
    name = next(store.files(IMPORTS)).split("/")[1]
    write_import(store, name, tmp_path / "out")
    report = ExportSource(tmp_path / "out").verify(Trust(lambda *signed: False))
    assert (report.faults, report.erased, report.payloads) == ((), 1, 1)
    target.close()
    assert held(tmp_path / "target") == []


@pytest.mark.parametrize("damaged", [b"torn\n", b"[]\n", b"[" * 100_000 + b"\n", b'{"session":[],"seq":1}\n'])
def test_a_damaged_payload_keeps_nobody_from_being_erased(target: CheckpointService, damaged: bytes) -> None:
    """Whose it was nobody can tell, so it goes along."""
    store = target._engine.kit.store
    name = next(
        name
        for name in store.files(IMPORTS)
        if "/payloads/" in name and MARK.encode() in (store.file(name) or b"")
    )
    target._engine.trail.commit((), {name: damaged + (store.file(name) or b"")})
    files, count = without_payloads(store, ["W"])
    assert count == 2
    assert damaged not in (files[name] or b"")
    target.close()


def test_a_store_without_imports_has_nothing_to_erase_there(target: CheckpointService) -> None:
    store = target._engine.kit.store
    assert without_payloads(store, ["nobody's"]) == ({}, 0)
    assert list(store.files(IMPORTS))
    target.close()


def test_payloads_of_entries_that_no_head_covered_go_too(tmp_path: Path) -> None:
    settings = {"retain": False, "background": False, "signing_key": f"{tmp_path}/log.key"}
    with (
        bootstrap.open(f"{tmp_path}/source", **settings) as source,
        bootstrap.open(f"{tmp_path}/target", retain=False, background=False) as kept,
    ):
        source.create_checkpoint("W", {"n": 1})
        source.audit.keeper.anchor(create_key=True)
        for _ in range(3):
            source.record_decision("W", f"believe {MARK}")
        kit, store = source._engine.kit, kept._engine.kit.store
        Copier(kit.store, store, kit.packer, kit.formats).copy(["W"], with_trail=True)
        [tail] = [name for name in store.files(IMPORTS) if name.endswith("payloads/tail.jsonl")]
        assert MARK.encode() in (store.file(tail) or b"")
        assert kept.erasure.workflow("W", reason="request 26").payloads == 3
    assert held(tmp_path / "target") == []
