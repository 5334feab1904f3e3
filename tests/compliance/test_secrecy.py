"""No secret is found in any byte, nothing is read without the key, and keys change while work goes on."""

from __future__ import annotations

import io
import logging
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import bootstrap
from holdfast.application.audit.audit_event import PayloadState
from holdfast.application.audit.audit_report import Reported
from holdfast.application.audit.reporting import FORMATS, Reports
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointError, KeyUnavailableError
from tests.canaries import CANARIES, traces
from tests.compliance.openings import open_service

WORDS = "the words that nobody else may read"


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Give every file below a folder as text, and every file of every bundle."""
    for path in folder.rglob("*"):
        if path.is_file():
            yield str(path), path.read_bytes().decode("latin-1")
            if zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    for name in archive.namelist():
                        yield f"{path}!{name}", archive.read(name).decode("latin-1")


def report_everything(service: CheckpointService, folder: Path) -> None:
    """Write every report there is."""
    engine = service._engine
    reports = Reports(engine.kit, engine.keeper, engine.audit.trust())
    for format in FORMATS:
        (folder / f"report.{format}").write_bytes(b"".join(reports.write(format, "s-1")))
    bundle = io.BytesIO()
    reports.bundle(bundle, "s-1")
    (folder / "report.zip").write_bytes(bundle.getvalue())
    reports.pack(folder / "pack")
    service.audit.export(folder / "export")


@pytest.mark.filterwarnings("ignore")
def test_no_canary_is_found_in_any_byte_of_store_log_error_or_report(url, tmp_path, caplog):
    caplog.set_level(logging.DEBUG, logger="holdfast")
    said: list[str] = []
    with open_service(url) as service:
        service.audit.keeper.anchor(create_key=True)
        for number, canary in enumerate(CANARIES):
            text = f"see {canary.text} here"
            service.create_checkpoint("WF-1", {"n": number, "note": text, "list": [text]}, agent_id="a")
            service.append_event("WF-1", "SAID", {"note": text})
            service.record_decision("WF-1", text, rationale=text, data={"alternatives": [text]})
            service.audit.log_event("NOTED", payload={"note": text, "deep": {"x": [text]}})
            logging.getLogger("holdfast").warning("failed with %s", text)
            for refused in (
                lambda text=text: service.create_checkpoint("WF-1", {text: object()}),
                lambda text=text: service.create_checkpoint(f"WF-{text}", {"n": 1}),
                lambda text=text: service.append_event("WF-1", text),
                lambda text=text: service.acquire_lease("WF-1", text),
            ):
                with pytest.raises(CheckpointError) as caught:
                    refused()
                said.append(str(caught.value))
        (tmp_path / "reports").mkdir()
        report_everything(service, tmp_path / "reports")
    searched = [*texts(tmp_path), ("errors", "\n".join(said)), ("logs", caplog.text)]
    assert len(searched) > 20 and len(CANARIES) > 20
    found = {(canary.kind, place) for canary in CANARIES for place, text in searched if traces(canary, text)}
    assert found == set()


def sealed(url: str, key: str = "OLD", **settings: Any) -> CheckpointService:
    return open_service(url, encrypt=True, encryption_key=f"env:{key}", **settings)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, digits in (("OLD", "11"), ("NEW", "22"), ("WRONG", "33")):
        monkeypatch.setenv(name, digits * 32)


def fill(service: CheckpointService) -> None:
    for n in range(5):
        service.create_checkpoint("WF-1", {"n": n, "words": f"{WORDS} {n}", "long": WORDS * 1000})
    service.append_event("WF-1", "SAID", {"words": WORDS})
    service.record_decision("WF-1", WORDS, rationale=WORDS)


def test_without_the_key_nothing_that_was_said_is_readable(url, tmp_path):
    with sealed(url) as service:
        fill(service)
        service.audit.export(tmp_path / "export")
    assert [place for place, text in texts(tmp_path) if WORDS in text or "words that" in text] == []
    for key in ("env:WRONG", None):
        with pytest.raises(KeyUnavailableError):
            open_service(url, "s-2", encryption_key=key)


def test_without_the_key_the_trail_is_verified_and_its_payloads_stay_sealed(url):
    with sealed(url) as service:
        fill(service)
        service.audit.keeper.anchor(create_key=True)
        assert [one.payload["rationale"] for one in reported(service) if one.payload] == [WORDS]
    with open_service(url, "s-2", read_only=True, audit=False) as auditor:
        report = auditor.audit.verify(payloads=True)
        assert (report.faults, report.level.label, report.payloads) == ((), "signed head", 1)
        assert [one.state for one in reported(auditor) if one.entry.payload] == [PayloadState.SEALED]
        with pytest.raises(KeyUnavailableError):
            auditor.load_latest("WF-1")


def reported(service: CheckpointService) -> list[Reported]:
    engine = service._engine
    return list(Reports(engine.kit, engine.keeper, engine.audit.trust()).entries("s-1"))


def test_keys_are_rotated_under_load_without_a_failed_read(url):
    with sealed(url, encryption_key_next="env:NEW") as service:
        fill(service)
        lines = list(service._engine.kit.store.leaves())
        stop = threading.Event()
        failed: list[BaseException] = []
        counts = {"reads": 0, "writes": 0}

        def read() -> None:
            try:
                while not stop.is_set():
                    assert service.restore_checkpoint("WF-1@1").context["n"] == 0
                    counts["reads"] += 1
            except BaseException as error:
                failed.append(error)

        def write() -> None:
            try:
                while not stop.is_set():
                    service.append_event("WF-2", "SAID", {"words": WORDS})
                    counts["writes"] += 1
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work) for work in (read, read, write)]
        for thread in threads:
            thread.start()
        service.keys.rotate(bootstrap.key_source("env:NEW"))
        while counts["reads"] < 20 or counts["writes"] < 5:
            assert not failed
            threads[0].join(0.01)
        stop.set()
        for thread in threads:
            thread.join()
        assert failed == []
        # Not one line of the trail was written anew.
        assert list(service._engine.kit.store.leaves())[: len(lines)] == lines
    with sealed(url, "NEW", session="s-2") as service:
        assert service.restore_checkpoint("WF-1@5").context["words"] == f"{WORDS} 4"
        assert service.audit.verify(payloads=True).faults == ()
