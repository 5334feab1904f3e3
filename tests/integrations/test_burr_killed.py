from __future__ import annotations

from tests.integrations.pages import KILLED, run_sample, sample


def test_the_sample_killed_after_any_commit_goes_on_and_repeats_no_step(tmp_path):
    code, after, places = sample("burr"), 0, []
    whole = run_sample(code, tmp_path)
    assert whole.lines[0] == "begins" and whole.lines[2] == "3 drafts", whole.problem
    while True:
        after += 1
        folder = tmp_path / str(after)
        folder.mkdir()
        first = run_sample(code, folder, after)
        if first.code != KILLED:
            break
        second = run_sample(code, folder)
        assert second.lines[1:] == whole.lines[1:], second.problem
        places.append(second.lines[0])
    steps = ["draft", "judge"] * 3 + ["publish"]
    assert places[:7] == [f"goes on after step {number}, {step}" for number, step in enumerate(steps)]


def test_the_sample_with_a_store_in_memory_begins_again(tmp_path):
    code = sample("burr").replace("file:.holdfast", "memory:")
    for drafts in (3, 6):
        lines = run_sample(code, tmp_path).lines
        assert (lines[0], lines[2]) == ("begins", f"{drafts} drafts")
