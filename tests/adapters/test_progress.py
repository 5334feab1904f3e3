"""Reports lie where people look for them, and no id and no link leads anywhere else."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.progress import ProgressFolder, progress_place
from holdfast.domain.errors import CheckpointWriteError

HEAD = "# w\n"


@pytest.fixture
def place(tmp_path: Path) -> ProgressFolder:
    return ProgressFolder(str(tmp_path / "root"), "progress")


@pytest.mark.parametrize(
    ("url", "path", "expected"),
    [
        ("file:/data/store", None, "/data/store/progress/wf-1.md"),
        ("sqlite:/data/store.db", None, "/data/store.db.progress/wf-1.md"),
        ("file:/data/store", "/reports", "/reports/wf-1.md"),
        ("sqlite:/data/store.db", "/reports", "/reports/wf-1.md"),
        ("memory:", "/reports", "/reports/wf-1.md"),
        ("postgresql://host/base", "/reports", "/reports/wf-1.md"),
    ],
)
def test_a_place_is_found_by_the_store_and_what_is_configured(
    url: str, path: str | None, expected: str
) -> None:
    found = progress_place(url, path)
    assert found is not None and found.path("wf-1") == expected


@pytest.mark.parametrize("url", ["memory:", "postgresql://host/base", "postgresql+embedded:/data"])
def test_a_store_in_no_folder_has_no_place_of_its_own(url: str) -> None:
    assert progress_place(url, None) is None


def test_what_is_appended_follows_the_head_of_a_new_report(place: ProgressFolder) -> None:
    assert not place.has("w") and place.read("w") is None
    place.append("w", HEAD, "one\n")
    place.append("w", HEAD, "tw\u00f6\n")
    assert place.has("w") and place.read("w") == f"{HEAD}one\ntw\u00f6\n"


def test_a_report_is_replaced_and_removed_as_a_whole(place: ProgressFolder) -> None:
    place.replace("w", "a long first text")
    place.replace("w", "short")
    assert place.read("w") == "short"
    assert os.listdir(Path(place.path("w")).parent) == ["w.md"]
    place.remove("w")
    place.remove("w")
    assert place.read("w") is None


def killed_while_replacing(place: ProgressFolder, text: str) -> list[str]:
    """Die in a process of its own in the middle of a replacement; answer what is there then."""
    child = os.fork()
    if child == 0:
        place._disk.rename = lambda source, target: os._exit(9)  # type: ignore[method-assign]
        place.replace("w", text)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    return os.listdir(Path(place.path("w")).parent)


def test_what_a_killed_writer_left_is_taken_by_the_next(place: ProgressFolder) -> None:
    assert len(killed_while_replacing(place, "half a text, and more")) == 1
    place.replace("w", "whole")
    assert place.read("w") == "whole"
    assert os.listdir(Path(place.path("w")).parent) == ["w.md"]


def test_what_a_killed_writer_left_goes_with_the_report(place: ProgressFolder) -> None:
    place.replace("w", "whole")
    assert len(killed_while_replacing(place, "about Ann")) == 2
    place.remove("w")
    assert os.listdir(Path(place.path("w")).parent) == []


def test_writers_of_one_report_wait_for_each_other(place: ProgressFolder) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: place.replace("w", f"{number}" * 1_000), range(10), chunksize=1))
    assert set(place.read("w") or "") in [{f"{number}"} for number in range(10)]
    assert os.listdir(Path(place.path("w")).parent) == ["w.md"]


def test_only_its_owner_may_read_a_report(place: ProgressFolder) -> None:
    place.append("w", HEAD, "text")
    path = Path(place.path("w"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@given(st.text(min_size=1, max_size=255))
def test_no_id_is_a_path(workflow_id: str) -> None:
    path = ProgressFolder("/store", "progress").path(workflow_id)
    assert os.path.normpath(path) == path and os.path.dirname(path) == "/store/progress"


def test_different_ids_have_different_files_where_case_does_not_count() -> None:
    ids = ["wf-1", "WF-1", "wf/1", "../wf-1", "wf 1"]
    place = ProgressFolder("/store")
    assert len({place.path(one).lower() for one in ids}) == len(ids)
    assert place.path("wf-1") == "/store/wf-1.md"


@pytest.mark.parametrize("planted", ["root/progress", "root/progress/w.md"])
def test_no_link_is_followed(place: ProgressFolder, tmp_path: Path, planted: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "w.md").write_text("mine", encoding="utf-8")
    link = tmp_path / planted
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside if planted.endswith("progress") else outside / "w.md")
    assert place.read("w") is None and not place.has("w")
    with pytest.raises(CheckpointWriteError):
        place.append("w", HEAD, "text")
    if planted.endswith("progress"):
        with pytest.raises(CheckpointWriteError):
            place.replace("w", "text")
    else:
        # Renaming replaces the link itself.
        place.replace("w", "text")
        assert place.read("w") == "text"
    assert (outside / "w.md").read_text(encoding="utf-8") == "mine"


def test_what_cannot_be_written_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    place = ProgressFolder(str(tmp_path / "file"))
    for work in (
        lambda: place.append("w", HEAD, "text"),
        lambda: place.replace("w", "text"),
        lambda: place.remove("w"),
    ):
        with pytest.raises(CheckpointWriteError, match="cannot be written") as caught:
            work()
        assert caught.value.place == place.path("w")


def test_a_file_in_which_nothing_found_room_is_no_report(place: ProgressFolder) -> None:
    place.append("w", "", "")
    assert Path(place.path("w")).read_bytes() == b""
    assert not place.has("w") and place.read("w") is None
    place.append("w", HEAD, "one\n")
    assert place.has("w") and place.read("w") == f"{HEAD}one\n"


def test_a_folder_in_the_place_of_a_report_is_no_report(place: ProgressFolder) -> None:
    os.makedirs(place.path("w"))
    assert place.read("w") is None and not place.has("w")
    with pytest.raises(CheckpointWriteError):
        place.replace("w", "text")
    assert os.listdir(Path(place.path("w")).parent) == ["w.md"]


def test_bytes_that_are_no_text_are_shown_as_far_as_they_are(place: ProgressFolder) -> None:
    place.append("w", HEAD, "text")
    Path(place.path("w")).write_bytes(b"a\xffb")
    assert place.read("w") == "a\ufffdb"
