"""Each key of holdfast.toml changes what happens: shown with it and without."""

from __future__ import annotations

import errno
import json
import logging
import mmap
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.adapters.filesystem.disk import Disk
from holdfast.application.app import App
from holdfast.application.progress_files import ProgressFiles
from holdfast.cli.main import main
from holdfast.config_sources import TABLES
from holdfast.domain.errors import (
    CheckpointError,
    DiskFullError,
    NoValidCheckpointError,
    StateTooLargeError,
)
from holdfast.domain.progress_report import REPORT_EVENT
from tests.encrypted import OLD_KEY

KEPT = 24
#: Noise that neither compresses to nothing nor repeats itself.
LARGE = " ".join(str(number * 7919 % 104729) for number in range(40_000))

Opened = Callable[..., Any]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Open the store of a folder whose holdfast.toml says this; each call has a folder of its own."""
    folders = iter(range(100))

    @contextmanager
    def open_with(text: str, top: str = "", **given: Any) -> Iterator[holdfast.CheckpointService]:
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        (folder / "holdfast.toml").write_text(f"{top}\n{text}\n", encoding="utf-8")
        monkeypatch.chdir(folder)
        with holdfast.open(**given) as service:
            yield service

    return open_with


def keyframe_size(service: holdfast.CheckpointService) -> int:
    service.create_checkpoint("W", {"text": LARGE})
    service.flush()
    store = service._engine.kit.store
    [keyframe] = store.keyframes("W")
    return len(store.keyframe("W", keyframe.sequence))


def living(service: holdfast.CheckpointService) -> int:
    """Make checkpoints until retention has had its turn, and count what is left of them."""
    for number in range(KEPT):
        state = holdfast.WorkflowState(phase=1, context={"words": LARGE[number * 9_000 :].split()[:1_500]})
        service.create_checkpoint("W", state)
    service.flush()
    return len(service.list_checkpoints("W"))


def test_enabled(opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    with opened("[checkpoint]\nenabled = true") as service:
        service.create_checkpoint("W", {"a": 1})
    assert Path(".holdfast").is_dir()
    with caplog.at_level(logging.WARNING, "holdfast"), opened("[checkpoint]\nenabled = false") as service:
        service.create_checkpoint("W", {"a": 1})
        assert service.restore_checkpoint("W@1").context == {"a": 1}
    assert not Path(".holdfast").exists()
    [told] = caplog.records
    assert "nothing is durable" in told.getMessage()


def test_a_store_that_is_switched_off_for_programs_can_still_be_looked_after(
    opened: Opened, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened("[checkpoint]\nenabled = false"):
        assert main(["init"]) == 0
        assert Path(".holdfast").is_dir()


def test_a_key_is_not_asked_for_where_nothing_is_kept(opened: Opened) -> None:
    with opened(
        "[checkpoint]\nenabled = false\nencryption = true", "encryption_key = 'file:gone'"
    ) as service:
        assert service.create_checkpoint("W", {"a": 1}).sequence == 1


def test_storage_path(opened: Opened) -> None:
    with opened("[checkpoint]\nstorage_path = 'sqlite:outputs.db'") as service:
        service.create_checkpoint("W", {"a": 1})
    assert Path("outputs.db").is_file() and not Path(".holdfast").exists()


def test_compression(opened: Opened) -> None:
    sizes = {}
    for word in ("false", "true", "'zstd'", "'gzip'"):
        with opened(f"[checkpoint]\ncompression = {word}", "blob_threshold_bytes = 10_000_000") as service:
            sizes[word] = keyframe_size(service)
    assert sizes["true"] == sizes["'zstd'"] != sizes["'gzip'"]
    assert max(sizes["true"], sizes["'gzip'"]) < sizes["false"]


@pytest.mark.parametrize("table", ["checkpoint", "performance"])
def test_compression_level(opened: Opened, table: str) -> None:
    sizes = []
    for level in (-50, 19):
        with opened(
            f"[{table}]\ncompression_level = {level}", "blob_threshold_bytes = 10_000_000"
        ) as service:
            sizes.append(keyframe_size(service))
    assert sizes[1] < sizes[0]


def test_encryption(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", OLD_KEY.hex())
    for word, is_hidden in (("false", False), ("true", True)):
        key = "encryption_key = 'env:MY_KEY'" if is_hidden else ""
        with opened(f"[checkpoint]\nencryption = {word}", key) as service:
            service.create_checkpoint("W", {"note": "MARKER-77"})
        found = [path for path in Path(".holdfast").rglob("*") if path.is_file()]
        assert any(b"MARKER-77" in path.read_bytes() for path in found) is not is_hidden


def test_retention_days(opened: Opened) -> None:
    with opened("[checkpoint]\nretention_days = 30", "retain_count = 2") as service:
        assert living(service) == KEPT
    with opened("[checkpoint]\nretention_days = 0", "retain_count = 2") as service:
        assert living(service) < KEPT


def test_max_checkpoints_per_phase(opened: Opened) -> None:
    with opened("[checkpoint]\nmax_checkpoints_per_phase = 100") as service:
        assert living(service) == KEPT
    with opened("[checkpoint]\nmax_checkpoints_per_phase = 3") as service:
        assert living(service) < KEPT


def test_checkpoint_size_limit_mb(opened: Opened) -> None:
    with opened("[checkpoint]\ncheckpoint_size_limit_mb = 1") as service:
        service.create_checkpoint("W", {"text": LARGE})
    with (
        opened("[checkpoint]\ncheckpoint_size_limit_mb = 0.1") as service,
        pytest.raises(StateTooLargeError),
    ):
        service.create_checkpoint("W", {"text": LARGE})


def test_async_writes(opened: Opened) -> None:
    # What other tests have left may be at work still.
    before = {*threading.enumerate()}
    for word in ("true", "false"):
        with opened(f"[performance]\nasync_writes = {word}", "retain = false") as service:
            living(service)
            names = {thread.name for thread in {*threading.enumerate()} - before}
            assert ("holdfast-housekeeper" in names) is (word == "true")
            assert len(list(service._engine.kit.store.keyframes("W"))) > 1


def test_batch_decisions(opened: Opened) -> None:
    for word in ("true", "false"):
        with opened(f"[performance]\nbatch_decisions = {word}\nasync_writes = false") as service:
            told = service.record_decision("W", "go on")
            assert told.durable is (word == "false")
            assert service.events("W") == ([told] if told.durable else [])
            service.create_checkpoint("W", {"a": 1})
            assert service.events("W")[0] == told


def test_memory_mapped_threshold_mb(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    mapped = []

    def counting(disk: Disk, handle: int, length: int, *, original: Any = Disk.map) -> mmap.mmap:
        mapped.append(length)
        found: mmap.mmap = original(disk, handle, length)
        return found

    monkeypatch.setattr(Disk, "map", counting)
    for threshold, count in (("0.05", 1), ("10", 0)):
        mapped.clear()
        text = f"[performance]\nmemory_mapped_threshold_mb = {threshold}\n[checkpoint]\ncompression = false"
        with opened(text, "blob_threshold_bytes = 10_000_000") as service:
            service.create_checkpoint("W", {"text": LARGE})
        with holdfast.open(read_only=True) as service:
            assert service.restore_checkpoint("W@1").context == {"text": LARGE}
        assert len(mapped) == count


# -- recovery --------------------------------------------------------------------------------


class Handling:
    """An app whose handler does what the test says, and counts."""

    def __init__(self, work: Callable[[], object] = lambda: None) -> None:
        self.calls = 0
        self.app = App()

        @self.app.handler("resume")
        def resume(context: Any) -> None:
            self.calls += 1
            work()


def damage(*sequences: int) -> None:
    """Change bytes in the records of a workflow, and what could stand in for them."""
    for path in Path(".holdfast").glob("checkpoints/*/w*/*"):
        lines = path.read_bytes().splitlines(keepends=True)
        if path.name.endswith(".deltas.jsonl"):
            wrong = {b'{"seq":%d,' % sequence for sequence in sequences}
            changed = [line.replace(b":", b";", 3) if line[:9] in wrong else line for line in lines]
            path.write_bytes(b"".join(changed))
        elif 1 in sequences and path.name.startswith("checkpoint_"):
            path.write_bytes(b"{}")


def fail() -> None:
    raise RuntimeError("not today")


def test_auto_recovery_and_stale_seconds(opened: Opened) -> None:
    for auto, stale, calls in (("true", 0, 1), ("false", 0, 0), ("true", 3600, 0)):
        handling = Handling()
        text = f"[recovery]\nauto_recovery = {auto}\nstale_seconds = {stale}"
        with opened(text, app=handling.app) as service:
            service.create_checkpoint("W", {"a": 1}, resume_handler="resume")
        with holdfast.open(app=handling.app):
            assert handling.calls == calls


def test_stale_seconds(opened: Opened) -> None:
    for stale, crashed in ((0, ["W"]), (3600, [])):
        with opened(f"[recovery]\nstale_seconds = {stale}") as service:
            service.create_checkpoint("W", {"a": 1})
            assert [one.workflow_id for one in service.incomplete_workflows()] == crashed


def test_max_recovery_attempts(opened: Opened) -> None:
    for attempts in (1, 3):
        handling = Handling(fail)
        with opened(f"[recovery]\nmax_recovery_attempts = {attempts}", app=handling.app) as service:
            service.create_checkpoint("W", {"a": 1}, resume_handler="resume")
            results = [service.recover_from_checkpoint("W@1") for _ in range(5)]
        assert not any(results) and results[-1].validation_errors
        assert handling.calls == attempts


def test_recovery_timeout_seconds(opened: Opened) -> None:
    for seconds, is_done in ((0.05, False), (300, True)):
        released = threading.Event()
        handling = Handling(partial(released.wait, 60))
        if is_done:
            released.set()
        with opened(f"[recovery]\nrecovery_timeout_seconds = {seconds}", app=handling.app) as service:
            service.create_checkpoint("W", {"a": 1}, resume_handler="resume")
            assert service.recover_from_checkpoint("W@1").success is is_done
            released.set()


def test_fallback_to_previous(opened: Opened) -> None:
    for word in ("true", "false"):
        with opened(f"[recovery]\nfallback_to_previous = {word}") as service:
            service.create_checkpoint("w", {"a": 1})
            service.create_checkpoint("w", {"a": 2})
        damage(2)
        with holdfast.open() as service:
            if word == "true":
                result = service.recover_workflow("w")
                assert str(result.checkpoint_used) == "w@1" and result.passed_over == (2,)
            else:
                with pytest.raises(CheckpointError):
                    service.recover_workflow("w")


def test_on_no_valid(opened: Opened) -> None:
    for word in ("fresh", "error"):
        with opened(f"[recovery]\non_no_valid = '{word}'") as service:
            service.create_checkpoint("w", {"a": 1})
        damage(1)
        with holdfast.open() as service:
            if word == "fresh":
                result = service.recover_workflow("w")
                assert result.success and result.checkpoint_used is None and result.warnings
            else:
                with pytest.raises(NoValidCheckpointError):
                    service.recover_workflow("w")


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file of this process be written any more."""

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Disk, "write", refuse)
        yield


def test_on_fault(opened: Opened) -> None:
    with opened("[recovery]\non_fault = 'raise'", "retain = false") as service:
        service.create_checkpoint("W", {"a": 1})
        with full_disk(), pytest.raises(DiskFullError):
            service.create_checkpoint("W", {"a": 2})
    with opened("[recovery]\non_fault = 'degrade'", "retain = false") as service:
        service.create_checkpoint("W", {"a": 1})
        with full_disk():
            held = service.create_checkpoint("W", {"a": 2})
            assert not held.durable
        service.flush()
    with holdfast.open() as service:
        assert service.restore_checkpoint(held).context == {"a": 2}


def test_progress_path(opened: Opened) -> None:
    for text, place in (("", ".holdfast/progress"), ("[checkpoint]\nprogress_path = 'reports'", "reports")):
        with opened(text) as service:
            section = service.append_event("w", REPORT_EVENT, {"title": "Offers", "summary": "three"})
            ProgressFiles(service._engine.kit).append(section)
        assert [path.as_posix() for path in Path().rglob("w.md")] == [f"{place}/w.md"]


def test_memory_budget_mb_and_emergency_path(opened: Opened, tmp_path: Path) -> None:
    for budget, is_spared in (("64", False), ("0", True)):
        text = f"[recovery]\non_fault = 'degrade'\nmemory_budget_mb = {budget}\n"
        with opened(text + f"emergency_path = '{tmp_path}/spare-{budget}'", "retain = false") as service:
            service.create_checkpoint("W", {"a": 1})
            with only_in(f"{tmp_path}/spare"):
                service.create_checkpoint("W", {"a": 2})
                place = service.health().emergency_place
            assert (place is not None and f"{tmp_path}/spare-{budget}" in place) is is_spared
            service.flush()
        assert bool(list(tmp_path.glob(f"spare-{budget}/**/holdfast.json"))) is is_spared


@contextmanager
def only_in(prefix: str) -> Iterator[None]:
    """Let nothing be written but below a folder: that is on another disk."""

    def write(disk: Disk, *given: Any, original: Any = Disk.write) -> None:
        if not disk.root.startswith(prefix):
            raise OSError(errno.ENOSPC, "no space left on device")
        original(disk, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Disk, "write", write)
        yield


FLOWS = """\
import holdfast

app = holdfast.App()


@app.handler("resume")
def resume(context):
    return "W-2"
"""


def test_app(opened: Opened, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    with opened("[recovery]\napp = 'flows_of_a_test:app'") as service:
        service.create_checkpoint("W", {"a": 1}, resume_handler="resume")
    Path("flows_of_a_test.py").write_text(FLOWS, encoding="utf-8")
    assert main(["recover", "W", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["handler"] == "resume"
    Path("holdfast.toml").write_text("", encoding="utf-8")
    main(["recover", "W", "--json"])
    assert json.loads(capsys.readouterr().out)["handler"] is None


def test_program(opened: Opened, capsys: pytest.CaptureFixture[str]) -> None:
    with opened("[run]\nprogram = 'nothing_there:team'") as service:
        service.create_checkpoint("W", {"a": 1})
    assert main(["resume", "W", "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["code"] == "invalid_config"
    Path("holdfast.toml").write_text("", encoding="utf-8")
    assert main(["resume", "W", "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["code"] == "wrong_usage"


def test_every_key_of_every_table_has_its_test_here() -> None:
    tests = [name for name in globals() if name.startswith("test_")]
    keys = {key for table in TABLES.values() for key in table}
    assert {key for key in keys if not any(key in name for name in tests)} == set()
