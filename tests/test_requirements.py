"""What the five documents ask for: every row names what is there, and says what the figures say."""

from __future__ import annotations

import os
import re

import pytest

from tests import requirements_pages as rq

#: How to bring the figures up to a new run of the benchmarks.
HINT = "WRITE_REQUIREMENTS=1 pytest tests/test_requirements.py takes new figures over"


def rewrite() -> None:
    """Take the figures of the benchmarks over into the pages, and what follows from them into the index."""
    known = rq.bars()
    for path in rq.PAGES.values():
        path.write_text(rq.renewed(path.read_text("utf-8"), known), encoding="utf-8")
    told = rq.digest(rq.read(rq.pages()), known)
    index = re.sub(
        rf"\| document \|(?:.*\n)+?- {rq.OWN_BARS}.*\n", lambda _: told, rq.INDEX.read_text("utf-8")
    )
    rq.INDEX.write_text(index, encoding="utf-8")


def test_every_row_names_what_is_there_and_says_what_was_measured() -> None:
    if os.environ.get("WRITE_REQUIREMENTS"):
        rewrite()
    assert rq.faults(rq.pages(), rq.INDEX.read_text("utf-8")) == {}, HINT


@pytest.mark.parametrize(
    ("page", "pattern", "instead", "fault"),
    [
        (1, r"\| 1\.7 \|.*\n", "", "holes"),
        (2, r"\| 2\.3 \|", "| 2.2 |", "holes"),
        (1, r"\| 1\.7 \| [^|]*\|", "| 1.7 |", "lines that are no rows"),
        (1, r"(\| 1\.7 \|)[^|]*\|", r"\1 |", "lines that are no rows"),
        (1, r"(\| 1\.7 \|[^|]*\|)[^|]*\|", r"\1   |", "empty"),
        (3, r"\| differs \|", "| done |", "no such verdict"),
        (4, r"(\| 4\.2 \|.*\| shown \|)[^|]*\|", r"\1 - |", "shown by nothing"),
        (1, r"\(rule \d\)", "(as it was easier)", "differs without a rule"),
        (4, r"(\| 4\.2 \|.*)::test_", r"\1::tests_", "odd words"),
        (1, r"::test_no_power_cut\w+", "::test_that_nobody_wrote", "no such test"),
        (5, r"`tests/[\w/]+\.py::", "`tests/test_of_nothing.py::", "no such test"),
        (1, r"`CheckpointService\.create_checkpoint`", "`CheckpointService.make_checkpoint`", "no such name"),
        (2, r"`holdfast recover`", "`holdfast recoup`", "no such name"),
        (2, r"`POST /v1/recover`", "`POST /v1/recoup`", "no such name"),
        (3, r"`holdfast_store_bytes`", "`holdfast_store_octets`", "no such name"),
        (3, r"`Config\.retain_days`", "`Config.retain_hours`", "no such name"),
        (1, r'benchmark "20 KB: Holdfast', 'benchmark "21 KB: Holdfast', "no such benchmark"),
        (1, r"(Holdfast checkpoint\": p50) \d+ us", r"\1 1 us", "stale figure"),
        (1, r"\(asked: p95 < 100 ms\)", "(asked: p95 < 0.001 ms)", "wrong verdict"),
        (4, r"(\| 4\.40 \|.*?\|) shown \|", r"\1 bar missed |", "wrong verdict"),
        (1, r"\| differs \|", "| not built |", "counts"),
    ],
)
def test_a_page_with_a_fault_would_be_found(page: int, pattern: str, instead: str, fault: str) -> None:
    """The negative control."""
    texts = rq.pages()
    changed = re.sub(pattern, instead, texts[page], count=1)
    assert changed != texts[page]
    assert rq.faults({**texts, page: changed}, rq.INDEX.read_text("utf-8"))[fault]


def test_a_row_that_is_gone_from_the_end_is_missed() -> None:
    texts = rq.pages()
    *_, last = rq.ROW.finditer(texts[5])
    found = rq.faults({**texts, 5: texts[5].replace(last[0] + "\n", "")}, rq.INDEX.read_text("utf-8"))
    assert found.keys() == {"counts"}


def test_figures_that_changed_are_taken_over_with_what_follows_from_them() -> None:
    line = '| 4.1 | a | b | shown | benchmark "x": p95 3 ms (asked: p95 < 50 ms)<br>benchmark "y": 2 of 2 |\n'
    known = {"x": rq.Bar("p50 2 ms, p95 70.5 ms", is_missed=False), "y": rq.Bar("2 of 2", is_missed=False)}
    later = line.replace("p95 3 ms", "p50 2 ms, p95 70.5 ms").replace("shown", "bar missed")
    assert rq.renewed(line, known) == later
    known["x"] = rq.Bar("p95 49 ms", is_missed=True)
    assert "| shown | " in rq.renewed(later, known)
    known["y"] = rq.Bar("1 of 2", is_missed=True)
    assert "| bar missed | " in rq.renewed(later, known)
