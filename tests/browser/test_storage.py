"""What the store takes, and when it will be full."""

from __future__ import annotations

import re

from playwright.sync_api import expect


def test_bytes_are_told_by_run_and_kind_and_what_could_go(looking, small):
    looking.go("/storage")
    figures = looking.at("storage-figures")
    for label in ("Store", "Whole to stored", "Could go", "Full in", "Quarantine"):
        expect(figures).to_contain_text(label)
    runs = list(small.desk.service.workflows())
    rows = looking.page.get_by_role("region", name="Bytes by run").locator("tbody tr[data-row]")
    expect(rows).to_have_count(len(runs))
    kinds = looking.page.locator("main .card", has=looking.page.get_by_role("heading", name="By kind"))
    expect(kinds.get_by_role("img")).to_have_attribute("aria-label", re.compile("^Bytes by kind: "))
    assert kinds.locator("li").count() >= 2


def test_growth_has_a_table_behind_it_and_the_window_is_in_the_address(looking):
    looking.go("/storage")
    looking.page.get_by_text("The days as a table").click()
    expect(looking.page.get_by_role("region", name="Growth by day").locator("tbody tr").first).to_be_visible()
    looking.page.get_by_label("Window").select_option("7")
    assert looking.route == "/storage?days=7"
    looking.settle()
    looking.page.reload()
    looking.settle()
    expect(looking.page.get_by_label("Window")).to_have_value("7")
