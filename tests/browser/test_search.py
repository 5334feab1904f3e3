"""One box for everything, and views that are kept."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect


def sought(visited, text):
    """Look for something in the box at the top."""
    visited.page.locator(".searchbox input").fill(text)
    visited.press("Enter")
    expect(visited.heading).to_have_text(f"Search: {text}")
    visited.settle()


@pytest.mark.parametrize(
    ("text", "group", "opens"),
    [
        ("support", "Runs", "support-chat"),
        ("kelp@5", "Checkpoints", "Checkpoint 5"),
        ("carrier", "Errors", "orders-17"),
        ("assistant", "Agents", "Runs"),
    ],
)
def test_one_box_finds_everything_by_what_it_is_called(looking, text, group, opens):
    sought(looking, text)
    card = looking.page.locator("main .card", has=looking.page.get_by_role("heading", name=group))
    card.locator(".hits a").first.click()
    expect(looking.heading).to_have_text(opens)


def test_the_beginning_of_a_checksum_finds_its_checkpoint(looking):
    ask = "() => fetch('/v1/checkpoints/kelp@4').then((answer) => answer.json())"
    checksum = looking.page.evaluate(ask)["row"]["checksum"].removeprefix("sha256:")
    sought(looking, checksum[:16])
    looking.page.locator(".hits a").first.click()
    expect(looking.heading).to_have_text("Checkpoint 4")


def test_kinds_can_be_chosen_and_are_in_the_address(looking):
    sought(looking, "kelp")
    looking.page.get_by_role("group", name="Kinds").get_by_role("button", name="Runs").click()
    assert "kind=run" in looking.route
    expect(looking.page.locator("main .card", has=looking.page.locator(".hits"))).to_have_count(1)


def test_what_is_not_there_says_how_to_look(looking):
    sought(looking, "no such thing at all")
    expect(looking.page.locator("main .empty").first).to_contain_text("Nothing was found")


def test_a_view_is_kept_and_comes_back(looking):
    looking.go("/search")
    looking.page.locator("[name=view-name]").fill("what failed")
    looking.page.locator("[name=view-address]").fill("#/runs?status=failed")
    looking.page.get_by_role("button", name="Keep").click()
    looking.page.reload()
    looking.settle()
    looking.page.get_by_role("link", name="what failed").click()
    expect(looking.heading).to_have_text("Runs")
    assert looking.route == "/runs?status=failed"


def test_a_view_that_leads_elsewhere_is_not_kept(looking):
    looking.go("/search")
    looking.page.locator("[name=view-name]").fill("away")
    looking.page.locator("[name=view-address]").fill("javascript:alert(1)")
    looking.page.get_by_role("button", name="Keep").click()
    expect(looking.page.locator(".toasts .bad")).to_be_visible()
    expect(looking.page.get_by_role("link", name="away")).to_have_count(0)
