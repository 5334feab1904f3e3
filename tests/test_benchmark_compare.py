"""The comparison with peers at its smallest: what it measures, and that it hides nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.compare import __main__ as command
from benchmarks.compare.contenders.plain import Plain
from benchmarks.compare.figures import Figures
from benchmarks.compare.lanes import LANES, PAIRS, Lane
from benchmarks.compare.pages import SHOWN, between_markers, shown, write
from benchmarks.compare.plots import pictures
from benchmarks.compare.sizes import Sizes
from benchmarks.compare.states import constant, next_state, with_images
from benchmarks.compare.tables import page, ratios
from benchmarks.peers.environment import EnvironmentUnavailableError

ROOT = Path(__file__).parent.parent
TINY = Sizes({2_000: 4}, 2, {2: 2}, 3, (2, 4), 60.0)
#: What a contender names that is made of nothing but Python.
PACKAGES = ()


class Forgetful(Plain):
    """Loses the last message of whatever it restores."""

    def restore(self, workflow):
        state = super().restore(workflow)
        return state and {**state, "messages": state["messages"][:-1]}


class Fragile(Plain):
    """Cannot be opened."""

    def __init__(self, url, writers):
        raise RuntimeError("it broke")


def _lane(name: str) -> Lane:
    return next(lane for lane in LANES if lane.name == name)


def _here(environment: str) -> Path:
    return Path(sys.executable)


def _compared(build: Path, *lanes: Lane, python_of=_here):
    results = command.compare(lanes, TINY, 1, 1.0, build, python_of)
    return results, json.loads((build / command.RESULTS).read_text())


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """One run with nobody but Holdfast and a plain file, and all that was kept of it."""
    build = tmp_path_factory.mktemp("compare")
    results, kept = _compared(build, _lane("plain"), _lane("holdfast-files"))
    assert results.problems() == []
    return build, kept


def test_a_run_measures_every_workload_of_every_contender(compared):
    _, kept = compared
    asked = {(one["lane"], one["workload"]) for one in kept["answers"]}
    workloads = {"constant-2000", "images", "writers-2", "resume", "chat"}
    assert asked == {(lane, workload) for lane in ("plain", "holdfast-files") for workload in workloads}
    figures = Figures(kept)
    for lane in ("plain", "holdfast-files"):
        assert figures.commit(lane, "constant-2000").median > 0
        assert figures.number(lane, "resume", "seconds").median > 0
        assert figures.marks(lane) == [2, 4]


def test_nothing_is_left_of_the_places_that_were_measured(compared):
    build, _ = compared
    assert not (build / "work").exists()


def test_what_a_contender_does_not_have_is_told_as_none(compared):
    _, kept = compared
    figures = Figures(kept)
    assert figures.call("plain", "constant-2000", "diff").reason == "none"
    assert figures.call("holdfast-files", "constant-2000", "diff").is_measured
    assert figures.kept("holdfast-files", "constant-2000") == "the last 10"


def test_the_pages_and_pictures_are_made_of_what_was_kept(compared, tmp_path):
    _, kept = compared
    written = {path.name for path in write(kept, tmp_path, tmp_path, into_pages=False)}
    drawn = {"compare-commit.svg", "compare-resume.svg", "compare-chat.svg"}
    assert written == {"comparison.md", "readme.md"} | drawn
    for text in pictures(kept).values():
        assert ElementTree.fromstring(text).tag.endswith("svg")
    told = page(kept)
    assert "| plain JSON + fsync + rename | files | synced |" in told
    assert "DBOS" not in told.partition("### ")[2], "whoever was not asked has no row of figures"


def test_below_the_table_of_the_readme_stand_pictures_with_what_they_say(compared, tmp_path):
    _, kept = compared
    (tmp_path / "docs").mkdir()
    for page_of_project in ("README.md", "docs/comparison.md"):
        (tmp_path / page_of_project).write_text("<!-- compare:start -->\n<!-- compare:end -->\n")
    write(kept, tmp_path / "build", tmp_path, into_pages=True)
    readme = (tmp_path / "README.md").read_text()
    _, table, commit, resume = readme.removesuffix("\n<!-- compare:end -->\n").split("\n\n")
    assert table == ratios(Figures(kept))
    assert commit.startswith("![A durable step, state of 2 KB: median. plain JSON + fsync + rename ")
    assert commit.endswith(" ms](docs/pictures/compare-commit.svg)") and "; Holdfast, files " in commit
    assert resume.startswith("![Killed with -9: ") and resume.endswith("](docs/pictures/compare-resume.svg)")
    assert all((tmp_path / "docs" / "pictures" / name).exists() for name in SHOWN)
    assert shown({}) == [], "what was not measured is not drawn"


def test_the_readme_says_what_its_pictures_show():
    drawn = {name: (ROOT / "docs" / "pictures" / name).read_text("utf-8") for name in SHOWN}
    pictures_of_page = "\n\n".join(shown(drawn))
    assert f"|\n\n{pictures_of_page}\n<!-- compare:end -->" in (ROOT / "README.md").read_text("utf-8")


def test_a_state_that_comes_back_as_another_fails_the_run(tmp_path):
    lane = Lane("forgetful", "a forgetful one", "files", f"{__name__}:Forgetful", None)
    results, _ = _compared(tmp_path, lane)
    assert len(results.problems()) == len(TINY.workloads(1))
    assert all("not equal" in problem for problem in results.problems())


def test_a_contender_that_breaks_fails_the_run_and_says_why(tmp_path):
    lane = Lane("fragile", "a fragile one", "files", f"{__name__}:Fragile", None, only="constant")
    results, kept = _compared(tmp_path, lane)
    assert results.problems() == ["fragile, constant-2000, round 1: failed: RuntimeError: it broke"]
    assert Figures(kept).commit("fragile", "constant-2000").reason == "failed: RuntimeError: it broke"


def test_a_contender_whose_environment_cannot_be_made_is_told_as_not_run(tmp_path):
    def unavailable(peer):
        raise EnvironmentUnavailableError(f"the environment of {peer} cannot be made: no such version")

    results, kept = _compared(tmp_path, _lane("burr"), python_of=unavailable)
    assert results.problems() == [] and kept["answers"] == []
    assert "- Burr SQLitePersister: not run: the environment of burr cannot be made" in page(kept)
    assert "| Burr SQLitePersister | Holdfast, SQLite | not run |" in ratios(Figures(kept))


def _kept_with(**seconds: float) -> dict:
    answers = [
        {"lane": lane, "workload": "constant-2000", "round": 1, "answer": {"commits": [value], "bytes": 1}}
        for lane, value in seconds.items()
    ]
    sizes = {"constant": {"2000": 1}, "writers": {}, "kill_at": 1, "turns": [1], "turn_seconds": 1}
    return {"lanes": {lane: {} for lane in seconds}, "sizes": sizes, "answers": answers}


def test_a_ratio_that_holdfast_loses_is_in_bold():
    lost = ratios(Figures(_kept_with(**{"holdfast-files": 0.002, "plain": 0.001})))
    won = ratios(Figures(_kept_with(**{"holdfast-files": 0.001, "plain": 0.002})))
    assert "| plain JSON + fsync + rename | Holdfast, files | **0.50x** |" in lost
    assert "| plain JSON + fsync + rename | Holdfast, files | 2.0x |" in won


def test_a_figure_is_the_median_of_the_rounds_with_its_spread():
    kept = _kept_with(plain=0.002)
    kept["answers"] += _kept_with(plain=0.009)["answers"] + _kept_with(plain=0.001)["answers"]
    figure = Figures(kept).commit("plain", "constant-2000")
    assert (figure.median, figure.least, figure.most) == (0.002, 0.001, 0.009)


def test_a_page_is_changed_between_its_markers_alone():
    old = "before\n<!-- compare:start -->\nold\n<!-- compare:end -->\nafter\n"
    assert between_markers(old, "new") == old.replace("old", "new")
    assert between_markers("no markers\n", "new") is None


def test_a_step_does_the_same_in_every_process_and_changes_a_part():
    *_, (before, _), (after, changed) = constant(20_000, 3)
    assert next_state(before, 2) == after
    kept = sum(one == other for one, other in zip(before["messages"], after["messages"], strict=True))
    assert changed == {"messages", "done"} and len(after["messages"]) - 2 <= kept < len(after["messages"])


def test_the_five_images_are_equal_and_not_one_object():
    (state, _), *_ = with_images(1)
    fields = (state["upload"], state["vision"]["input"], state["crop"]["of"], state["report"]["figures"][0])
    assert len(set(fields)) == 1 and len({id(one) for one in fields}) == 4


def test_every_pair_is_of_holdfast_and_a_peer():
    assert all(_lane(ours).is_ours and not _lane(theirs).is_ours for ours, theirs in PAIRS)
    paired = {theirs for _, theirs in PAIRS}
    assert {lane.name for lane in LANES if not lane.is_ours} - paired == {"langgraph-unsaved"}
