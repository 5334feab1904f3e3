from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import holdfast
from holdfast.application.insight.questions import has_ended, last_point
from holdfast.application.recovery.owners import own_name
from holdfast.cli.group import Call
from holdfast.cli.opening import reading
from holdfast.cli.run_standing import begun_with, report_path, runner_of, standing
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.run_events import RUN_UPDATED
from tests.cli.conftest import Run, damage_record


def test_a_workflow_stands_as_its_last_event_left_it(run: Run, store: Path) -> None:
    call = Call(str(store))
    with holdfast.open(str(store)) as service:
        data = {"fields": {"status": "paused", "metadata": {"pair": (1, 2)}}}
        service.append_event("WF-1", RUN_UPDATED, data, step_id="run")
    fields = standing(call, "WF-1")
    assert fields is not None
    assert (fields["status"], fields["metadata"], fields["current_step"]) == ("paused", {"pair": (1, 2)}, 2)


def test_what_is_not_there_does_not_stand(run: Run, store: Path) -> None:
    assert standing(Call(str(store)), "WF-9") is None
    assert standing(Call("nowhere"), "WF-1") is None
    assert not Path("nowhere").exists()


def test_what_cannot_be_read_is_left_to_recovery(run: Run, tmp_path: Path) -> None:
    with holdfast.open("own") as service:
        service.create_checkpoint("WF-1", {"a": 1})
        service.append_event("WF-1", "NOTED", {"a": 2})
    [path] = Path("own").glob("events/*/wf-1*/*.jsonl")
    path.write_bytes(path.read_bytes().replace(b"WF-1", b"WF-2"))
    assert standing(Call("own"), "WF-1") == {}


def test_a_damaged_checkpoint_is_passed_over(run: Run, store: Path) -> None:
    damage_record(store, 3)
    fields = standing(Call(str(store)), "WF-1")
    assert fields is not None and fields["total_steps"] == 3


def test_a_workflow_without_events_has_no_last_point(run: Run, store: Path) -> None:
    with reading(Call(str(store))) as kit:
        assert last_point(kit, "WF-9") is None
        found = last_point(kit, "WF-1")
        assert found is not None and found.event_seq == kit.store.head("WF-1").event_seq


def test_whoever_runs_a_workflow_is_known_until_the_process_is_gone(run: Run, store: Path) -> None:
    script = "import sys; from holdfast.application.recovery.owners import own_name; print(own_name('run-1'))"
    gone = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    with holdfast.open(str(store)) as service, reading(Call(str(store))) as kit:
        assert runner_of(kit, "WF-1") is None
        lease = service.acquire_lease("WF-1", own_name("run-1"))
        found = runner_of(kit, "WF-1")
        assert found is not None and str(os.getpid()) in found.owner
        service.release_lease(lease)
        assert runner_of(kit, "WF-1") is None
        service.acquire_lease("WF-1", gone.stdout.strip())
        assert runner_of(kit, "WF-1") is None


def test_a_workflow_has_ended_with_a_checkpoint_that_says_so(run: Run, store: Path) -> None:
    with holdfast.open(str(store)) as service:
        service.create_checkpoint("WF-2", {"small": False}, type=CheckpointType.WORKFLOW_COMPLETE)
    with reading(Call(str(store))) as kit:
        assert [has_ended(kit, one) for one in ("WF-1", "WF-2", "WF-9")] == [False, True, False]


def test_a_report_has_a_path_once_it_is_written(run: Run, store: Path) -> None:
    with reading(Call(str(store))) as kit:
        assert report_path(kit, "WF-1") is None
        assert kit.progress is not None
        kit.progress.replace("WF-1", "# WF-1\n")
        path = report_path(kit, "WF-1")
    assert path is not None and Path(path).read_text() == "# WF-1\n"


def test_what_a_run_was_begun_with_is_in_its_state() -> None:
    assert begun_with({"execution_config": {"config": {"tone": "dry"}}}) == {"tone": "dry"}
    assert begun_with(None) == begun_with({}) == begun_with({"execution_config": {"config": 7}}) == {}
