"""Reports can be read while a workflow runs, are made anew from its journal, and go with it."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.application.app import App
from holdfast.application.progress_files import ProgressFiles
from holdfast.application.service import CheckpointService
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointError, CheckpointNotFoundError, CheckpointWriteError
from holdfast.domain.event import Event
from holdfast.domain.ids import folder_name
from holdfast.domain.progress_report import REPORT_EVENT, report_head, section_of
from tests.application.services import make_service
from tests.application.versions import KINDS, Home
from tests.encrypted import OLD_KEY

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
#: Kinds of stores that write reports where a path is configured.
OPEN_KINDS = [kind for kind in KINDS if kind != "sealed"]


@pytest.fixture(params=OPEN_KINDS)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    return Home(request.param, tmp_path)


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    return tmp_path / "reports"


def opened(home: Home, reports: Path) -> CheckpointService:
    return home.open(App(), progress_path=str(reports))


def files_of(service: CheckpointService) -> ProgressFiles:
    return ProgressFiles(service._engine.kit)


def report(service: CheckpointService, title: str, workflow_id: str = "wf-1") -> Event:
    data = {"title": title, "summary": f"About {title}.", "citations": [f"book of {title}"]}
    made = service.append_event(workflow_id, REPORT_EVENT, data)
    assert isinstance(made, Event)
    return made


def whole(*events: Event) -> str:
    return report_head(events[0].workflow_id) + "".join(section_of(event).render() for event in events)


def test_a_report_grows_with_each_section_and_equals_what_is_made_anew(home: Home, reports: Path) -> None:
    with opened(home, reports) as service:
        files, events = files_of(service), []
        for title in ("One", "Two", "Three"):
            events.append(report(service, title))
            files.append(events[-1])
            assert (reports / "wf-1.md").read_text(encoding="utf-8") == whole(*events)
        service.append_event("wf-1", "SOMETHING_ELSE", {"title": "no"})
        assert files.rebuild("wf-1") == files.text("wf-1") == whole(*events)
        assert (reports / "wf-1.md").read_text(encoding="utf-8") == whole(*events)


def test_sections_after_the_first_are_appended_and_nothing_is_replaced(home: Home, reports: Path) -> None:
    with opened(home, reports) as service:
        files = files_of(service)
        files.append(report(service, "One"))
        path = reports / "wf-1.md"
        path.write_text("by hand\n", encoding="utf-8")
        before = path.stat().st_ino
        two = report(service, "Two")
        files.append(two)
        assert path.read_text(encoding="utf-8") == "by hand\n" + section_of(two).render()
        assert path.stat().st_ino == before


def test_a_report_that_was_deleted_is_made_anew(home: Home, reports: Path) -> None:
    with opened(home, reports) as service:
        files = files_of(service)
        one = report(service, "One")
        files.append(one)
        (reports / "wf-1.md").unlink()
        assert files.text("wf-1") == whole(one)
        assert not (reports / "wf-1.md").exists()
        two = report(service, "Two")
        files.append(two)
        assert files.text("wf-1") == whole(one, two)
        (reports / "wf-1.md").unlink()
        assert files.rebuild("wf-1") == (reports / "wf-1.md").read_text(encoding="utf-8") == whole(one, two)


def test_what_a_dead_process_did_not_append_is_there_after_the_next_section(
    home: Home, reports: Path
) -> None:
    with opened(home, reports) as service:
        one = report(service, "One")
        files_of(service).append(one)
        lost = report(service, "Lost")
    with opened(home, reports) as again:
        three = report(again, "Three")
        files_of(again).append(three)
        assert (reports / "wf-1.md").read_text(encoding="utf-8") == whole(one, lost, three)


def test_sections_that_are_committed_before_either_is_appended_are_there_once(reports: Path) -> None:
    service = make_service(progress_path=str(reports))
    files = files_of(service)
    events = [report(service, str(number)) for number in range(8)]
    threads = [threading.Thread(target=files.append, args=(event,)) for event in events]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert files.text("wf-1") == whole(*events)


def test_workflows_have_reports_of_their_own(home: Home, reports: Path) -> None:
    with opened(home, reports) as service:
        files = files_of(service)
        for workflow_id in ("wf-1", "WF-1", "../wf-1"):
            files.append(report(service, "One", workflow_id))
        names = {f"{folder_name(one)}.md" for one in ("wf-1", "WF-1", "../wf-1")}
        assert {path.name for path in reports.iterdir()} == names and len(names) == 3
        assert files.text("../wf-1").startswith("# ../wf-1\n")


@pytest.mark.parametrize(
    ("url", "place"),
    [("{}/store", "store/progress/wf-1.md"), ("sqlite:{}/store.db", "store.db.progress/wf-1.md")],
)
def test_by_default_a_report_lies_in_the_folder_of_the_store_or_beside_its_file(
    tmp_path: Path, url: str, place: str
) -> None:
    with holdfast.open(url.format(tmp_path), background=False) as service:
        one = report(service, "One")
        files_of(service).append(one)
        assert (tmp_path / place).read_text(encoding="utf-8") == whole(one)
        store = service._engine.kit.store
        store.settle()
        assert list(store.check()) == []
    with holdfast.open(url.format(tmp_path), read_only=True) as reading:
        assert files_of(reading).text("wf-1") == whole(one)


def test_where_there_is_no_place_the_journal_tells_the_same(tmp_path: Path) -> None:
    service = make_service()
    one = report(service, "One")
    files = files_of(service)
    files.append(one)
    assert files.text("wf-1") == files.rebuild("wf-1") == whole(one)
    files.remove("wf-1")
    assert list(tmp_path.iterdir()) == []


def test_in_an_encrypted_store_no_report_is_written_wherever_it_is_asked_for(tmp_path: Path) -> None:
    given: dict[str, Any] = {"encrypt": True, "encryption_key": f"command:echo {OLD_KEY.hex()}"}
    with holdfast.open(f"{tmp_path}/store", progress_path=f"{tmp_path}/reports", **given) as service:
        one = report(service, "Hidden-Words")
        files = files_of(service)
        files.append(one)
        assert "Hidden-Words" in files.text("wf-1") == files.rebuild("wf-1")
    assert not (tmp_path / "reports").exists() and not (tmp_path / "store" / "progress").exists()
    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in found if b"Hidden-Words" in path.read_bytes()]


def test_secrets_do_not_come_into_a_report(home: Home, reports: Path) -> None:
    with opened(home, reports) as service:
        files_of(service).append(report(service, f"key {SECRET}"))
        assert SECRET not in (reports / "wf-1.md").read_text(encoding="utf-8")
        assert SECRET not in files_of(service).rebuild("wf-1")


def test_a_report_that_cannot_be_written_is_logged_and_stops_nobody(
    home: Home, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file", encoding="utf-8")
    with opened(home, blocked) as service:
        one = report(service, "One")
        files = files_of(service)
        with caplog.at_level(logging.WARNING, "holdfast"):
            files.append(one)
        assert "the progress report of wf-1 is behind" in caplog.text
        with pytest.raises(CheckpointWriteError):
            files.rebuild("wf-1")
        assert files.text("wf-1") == whole(one)
        blocked.unlink()
        two = report(service, "Two")
        files.append(two)
        assert files.text("wf-1") == whole(one, two)


def test_a_journal_that_cannot_be_read_keeps_no_section_from_being_written(
    reports: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    service = make_service(progress_path=str(reports))
    one = report(service, "One")

    def unreadable(*given: Any, **more: Any) -> Any:
        raise CheckpointError("the disk is gone")

    monkeypatch.setattr(service._engine.kit.store, "events", unreadable)
    with caplog.at_level(logging.WARNING, "holdfast"):
        files_of(service).append(one)
    assert "may lack sections" in caplog.text
    assert (reports / "wf-1.md").read_text(encoding="utf-8") == whole(one)


def test_a_section_that_waits_for_the_disk_is_in_the_report_already(reports: Path) -> None:
    service = make_service(progress_path=str(reports))
    one = report(service, "One")
    files = files_of(service)
    files.append(one)
    waiting = Event(one.seq + 1, one.timestamp, REPORT_EVENT, "wf-1", data={"title": "Two"}, durable=False)
    fresh = files_of(service)
    fresh.append(waiting)
    assert files.text("wf-1") == whole(one, waiting)


def test_erasing_a_workflow_deletes_its_report_and_no_other(home: Home, reports: Path) -> None:
    with opened(home, reports) as service:
        files = files_of(service)
        kept = report(service, "Kept", "wf-2")
        for event in (report(service, "One"), kept):
            files.append(event)
        service.erasure.workflow("wf-1", reason="asked for")
        assert [path.name for path in reports.iterdir()] == ["wf-2.md"]
        assert files.rebuild("wf-1") == files.text("wf-1") == "# wf-1\n"
        assert [path.name for path in reports.iterdir()] == ["wf-2.md"]
        assert files.text("wf-2") == whole(kept)


def test_an_erasure_whose_report_cannot_be_deleted_is_not_done(home: Home, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file", encoding="utf-8")
    with opened(home, blocked) as service:
        one = report(service, "One")
        with pytest.raises(CheckpointWriteError):
            service.erasure.workflow("wf-1", reason="asked for")
        assert [event.seq for event in service.events("wf-1")] == [one.seq]


def test_a_store_that_is_only_read_gets_no_report(tmp_path: Path, reports: Path) -> None:
    with holdfast.open(f"{tmp_path}/store") as service:
        one = report(service, "One")
    with holdfast.open(f"{tmp_path}/store", read_only=True, progress_path=str(reports)) as reading:
        files_of(reading).append(one)
        assert files_of(reading).rebuild("wf-1") == whole(one)
    assert not reports.exists()


def test_a_workflow_that_does_not_exist_has_no_report(home: Home, reports: Path) -> None:
    with opened(home, reports) as service:
        for work in (files_of(service).text, files_of(service).rebuild):
            with pytest.raises(CheckpointNotFoundError, match="no such workflow"):
                work("wf-9")
    assert not reports.exists()


def test_reading_the_journal_for_somebody_is_told_in_the_trail() -> None:
    service = make_service()
    report(service, "One")
    ProgressFiles(service._engine.kit, service._engine.trail).text("wf-1")
    service.flush()
    [entry] = service.audit.query_events(event_types=[AuditType.EVENTS_READ])
    assert entry.workflow_id == "wf-1"


def test_what_keeps_a_report_up_to_date_is_told_to_nobody(home: Home, reports: Path) -> None:
    with opened(home, reports) as service:
        ProgressFiles(service._engine.kit, service._engine.trail).append(report(service, "One"))
        service.flush()
        assert list(reports.iterdir())
        assert service.audit.query_events(event_types=[AuditType.EVENTS_READ]) == []
