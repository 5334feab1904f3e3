"""What is different between two checkpoints."""

from __future__ import annotations

import json

import msgspec
import pytest
from playwright.sync_api import expect

import holdfast
from holdfast.domain.json_patch import patched
from holdfast.server.json_patch import Edit, steps
from tests.browser.browsing import step, visit
from tests.browser.test_checkpoint import CLIPBOARD, COPIED

LONG = "\n".join(f"line {number} of the text" for number in range(40))


@pytest.fixture(scope="module", autouse=True)
def changed(small):
    """Two states with something added, removed, changed, moved, and a long text with one other line."""
    before = {"gone": 1, "name": "old", "text": LONG, "a": {"long": list(range(30))}, "clock": 1}
    text = LONG.replace("line 7 ", "line VII ")
    after = {"new": [1], "name": "new", "text": text, "b": before["a"], "clock": 2}
    for context in (before, after):
        small.desk.service.create_checkpoint("changes", holdfast.WorkflowState(context=context))


def compared(visited, query=""):
    """Compare the two states, and answer the changes."""
    visited.go(f"/diff/{step('changes@1')}..{step('changes@2')}{query}")
    expect(visited.at("changes")).to_be_visible()
    return visited.at("changes")


def test_counts_and_kinds_are_told_in_words(looking):
    changes = compared(looking)
    counts = looking.at("diff-counts")
    for kind in ("added", "removed", "changed"):
        expect(counts.get_by_role("button", name=kind)).to_be_visible()
        expect(changes.locator(f".change[data-kind={kind}]").first).to_contain_text(kind)
    counts.get_by_role("button", name="removed").click()
    expect(changes.locator(".change[data-kind=added]")).to_have_count(0)
    assert "kind=removed" in looking.route


def test_what_moved_says_from_where(looking):
    moved = compared(looking).locator(".change[data-kind=moved]")
    expect(moved).to_contain_text("/context/b")
    expect(moved).to_contain_text("from /context/a")


def test_side_by_side_or_one_below_the_other(looking):
    changes = compared(looking)
    expect(changes.locator(".sides").first).to_be_visible()
    looking.page.get_by_label("Show").select_option("unified")
    expect(changes.locator(".unified").first).to_be_visible()
    expect(changes.locator(".sides")).to_have_count(0)
    assert "view=unified" in looking.route


def test_a_path_can_be_left_out(looking):
    changes = compared(looking)
    expect(changes.get_by_text("/context/clock", exact=True)).to_be_visible()
    looking.page.get_by_label("Leave out").fill("/context/clock,/context/name")
    looking.press("Enter")
    expect(changes.get_by_text("/context/clock", exact=True)).to_have_count(0)
    expect(changes.get_by_text("/context/name", exact=True)).to_have_count(0)
    assert "ignore=" in looking.route


def test_inside_a_long_text_the_lines_are_compared(looking):
    lines = compared(looking).locator(".lines")
    expect(lines.locator(".line.removed")).to_have_text("-line 7 of the text")
    expect(lines.locator(".line.added")).to_have_text("+line VII of the text")


def test_any_two_can_be_compared_and_swapped(looking):
    compared(looking)
    looking.page.get_by_role("button", name="Swap").click()
    expect(looking.page.locator("main .note")).to_contain_text("From changes@2 to changes@1")
    looking.page.get_by_label("From").fill("support-chat@3")
    looking.press("Enter")
    expect(looking.page.locator("main .note")).to_contain_text("From support-chat@3 to changes@1")
    expect(looking.at("diff-counts")).to_be_visible()


def test_the_copied_patch_makes_one_state_of_the_other(browser, small):
    with visit(browser, small, **CLIPBOARD) as visited:
        compared(visited)
        visited.at("copy-patch").click()
        expect(visited.page.locator(".toasts")).to_contain_text("RFC 6902")
        patch = json.loads(visited.page.evaluate(COPIED))
        visited.check()
    get = "() => fetch('/v1/checkpoints/changes@{0}/state?form=value').then((answer) => answer.json())"
    with visit(browser, small) as visited:
        before, after = (visited.page.evaluate(get.format(number)) for number in (1, 2))
    assert before != after
    assert patched(before, steps(msgspec.convert(patch, list[Edit]))) == after
