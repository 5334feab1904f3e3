from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.adapters.crypto.keystore import KeyFolder
from holdfast.adapters.crypto.signing import verify
from holdfast.application.audit.audit_report import LISTING, STATEMENT, check_statement
from holdfast.application.audit.processing_register import write_annotations
from holdfast.application.audit.reporting import FORMATS, Reports, settings_of
from holdfast.application.service import CheckpointService
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointNotFoundError, ConfigError
from tests.application.services import make_kit
from tests.application.told import Page, check_page


@pytest.fixture
def service(tmp_path):
    kit = replace(make_kit(session="s-1"), signing=KeyFolder(tmp_path / "keys"))
    with CheckpointService(kit) as service:
        service.create_checkpoint("WF-1", {"n": 1})
        service.record_decision("WF-1", "take B", agent_id="planner", rationale="it is cheap")
        service.audit.keeper.anchor(create_key=True)
        service.create_checkpoint("WF-1", {"n": 2})
        yield service


@pytest.fixture
def reports(service):
    return reports_of(service)


def reports_of(service: CheckpointService) -> Reports:
    engine = service._engine
    return Reports(engine.kit, engine.keeper, engine.audit.trust())


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_format_can_be_written_for_a_session_and_for_everything(reports):
    for format in FORMATS:
        one, everything = b"".join(reports.write(format, "s-1")), b"".join(reports.write(format))
        assert b"it is cheap" in one and b"it is cheap" in everything
        assert b"HEAD_SIGNED" not in one and len(everything) > len(one)


def test_the_page_shows_what_was_verified(reports, service):
    page = Page(b"".join(reports.write("html", "s-1", service.audit.verify())).decode())
    check_page(page)
    assert "Level reached: signed head." in page.text and "Read from memory:" in page.text


def test_an_unknown_format_or_session_is_told(reports):
    with pytest.raises(ConfigError, match="no report as 'pdf'"):
        reports.write("pdf", "s-1")
    with pytest.raises(CheckpointNotFoundError):
        reports.write("csv", "s-2")


def test_a_bundle_has_the_export_the_reports_and_a_statement_of_the_log(reports, service):
    target = io.BytesIO()
    listing = reports.bundle(target, "s-1", service.audit.verify())
    with zipfile.ZipFile(target) as archive:
        names = set(archive.namelist())
        assert {"export/README.txt", "export/checkpoint", "export/vkeys"} <= names
        assert {"report.csv", "report.html", "report.jsonl", LISTING, STATEMENT} <= names
        assert archive.read(LISTING) == listing
        keys = service.audit.keeper.keys()
        assert "about session s-1" in check_statement(archive.read(STATEMENT), listing, keys, verify)


def test_a_pack_made_again_at_its_horizon_has_the_same_bytes(reports, service, tmp_path):
    index = reports.pack(tmp_path / "one")
    trail = service._engine.trail
    trail.record(*trail.told(AuditType.TRAIL_EXPORTED, facts={"scope": "evidence pack"}))
    service.audit.verify()
    service.create_checkpoint("WF-1", {"n": 3})
    service.audit.keeper.anchor()
    assert reports_of(service).pack(tmp_path / "two", index["horizon"]["size"]) == index
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert json.loads(contents(tmp_path / "one")["verification.json"])["level"] == "signed head"


def test_a_pack_can_be_about_some_frameworks_only(reports, tmp_path):
    index = reports.pack(tmp_path / "pack", frameworks=("gdpr", "ai-act"))
    assert {control["framework"] for control in index["controls"]} == {"GDPR", "EU AI Act"}
    page = Page(contents(tmp_path / "pack")["index.html"].decode())
    check_page(page)
    assert "Evidence pack: GDPR, EU AI Act" in page.text and "CC6.1" not in page.text


def test_the_register_is_made_of_the_store_as_it_is(reports, service):
    write_annotations(service._engine.kit.store, service._engine.trail, {"controller": {"name": "Example"}})
    register = reports.register()
    assert register["parties"] == {"controller": {"name": "Example"}}
    assert register["observed"]["workflows"] == 1 and "contact of the controller" in register["missing"]


def test_a_horizon_beyond_the_log_is_refused(reports):
    for size in (-1, 1000):
        with pytest.raises(ConfigError, match="entries, not"):
            reports.horizon(size)


def test_a_horizon_before_the_first_head_has_no_proofs(reports):
    assert reports.horizon(2).head is None
    assert reports.horizon(2).report.signed_size == 0


def test_settings_tell_how_the_store_is_set_up():
    settings = settings_of(make_kit())
    assert settings["encryption"] == {"on": False}
    assert settings["recording"] == {"on": True, "reads_refused_if_not_recorded": False}
    assert settings["retention"]["checkpoints"] is None
    assert settings_of(make_kit(retain=True))["retention"]["checkpoints"]["retain_count"] == 10
