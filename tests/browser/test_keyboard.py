"""The whole way without a mouse."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.browsing import step

#: Whether what has the focus can be seen to have it.
HAS_RING = """() => {
  const style = getComputedStyle(document.activeElement);
  return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== "none";
}"""
#: What has the focus, in words.
FOCUSED = """() => {
  const node = document.activeElement;
  return node.getAttribute("aria-label") || node.textContent.trim() || node.name || node.tagName;
}"""


def cursor(visited):
    """Answer the row that the keys are at."""
    return visited.page.locator("main tr.cursor")


def test_from_a_search_to_a_difference_and_back(looking):
    looking.press("/")
    expect(looking.page.locator(".searchbox input")).to_be_focused()
    looking.page.keyboard.type("support")
    looking.press("Enter")
    expect(looking.heading).to_have_text("Search: support")
    expect(looking.page.locator(".hits a").first).to_be_visible()
    looking.press("j", "Enter")
    expect(looking.heading).to_have_text("support-chat")
    looking.go("/runs/support-chat?tab=checkpoints")
    looking.press("j", "j", "k", "Enter")
    expect(looking.heading).to_have_text("Checkpoint 12")
    looking.press("[")
    expect(looking.heading).to_have_text("Checkpoint 11")
    expect(looking.at("chips")).to_be_visible()
    looking.press("]")
    expect(looking.heading).to_have_text("Checkpoint 12")
    expect(looking.at("chips")).to_be_visible()
    looking.press("d")
    expect(looking.heading).to_have_text("Difference")
    assert looking.route.startswith("/diff/support-chat%4011..support-chat%4012")


def test_g_and_a_letter_go_to_the_pages(looking):
    for letter, title in (
        ("r", "Runs"),
        ("a", "Audit trail"),
        ("s", "Storage"),
        ("q", "Quarantine"),
        ("h", "What needs you"),
    ):
        looking.press("g", letter)
        expect(looking.heading).to_have_text(title)
        expect(looking.heading).to_be_focused()
        looking.settle()


def test_rows_are_chosen_by_j_and_k_within_the_filter(looking):
    looking.go("/runs?status=failed,waiting")
    rows = looking.page.locator("main tbody tr[data-row]")
    expect(rows).to_have_count(2)
    looking.press("j")
    expect(cursor(looking)).to_have_attribute("data-row", "0")
    looking.press("j", "j", "j")
    expect(cursor(looking)).to_have_attribute("data-row", "1")
    looking.press("k")
    expect(cursor(looking)).to_have_attribute("data-row", "0")
    name = cursor(looking).locator("a").first.inner_text()
    looking.press("Enter")
    expect(looking.heading).to_have_text(name)


def test_the_help_lists_the_keys_and_escape_closes_it(looking):
    button = looking.page.get_by_role("button", name="Keys")
    button.focus()
    looking.press("?")
    expect(looking.dialog.get_by_role("heading", name="Keys")).to_be_visible()
    for text in ("Search", "Difference to the parent", "Go to the runs", "Previous, next checkpoint"):
        expect(looking.dialog).to_contain_text(text)
    looking.press("g", "a")
    expect(looking.dialog).to_be_visible()
    looking.press("Escape")
    expect(looking.dialog).to_have_count(0)
    expect(button).to_be_focused()


def test_tab_begins_with_the_way_to_the_content_and_every_stop_is_seen(looking):
    looking.page.reload()
    looking.settle()
    names = []
    for _ in range(14):
        looking.page.keyboard.press("Tab")
        names.append(looking.page.evaluate(FOCUSED))
        assert looking.page.evaluate(HAS_RING), names[-1]
    assert names[0] == "To the content"
    assert names.index("Holdfast") < names.index("Runs") < names.index("Audit trail")
    assert len(set(names)) > 10


def test_the_way_to_the_content_leads_there(looking):
    looking.page.reload()
    looking.settle()
    looking.press("Tab", "Enter")
    assert looking.page.evaluate("() => Boolean(document.activeElement.closest('#content'))")


def test_a_dialog_keeps_the_focus_and_gives_it_back(looking):
    looking.go(f"/checkpoints/{step('kelp@5')}")
    button = looking.page.get_by_role("button", name="Validate", exact=True)
    button.focus()
    looking.press("Enter")
    expect(looking.at("plan")).to_be_visible()
    expect(looking.dialog.get_by_label("Why")).to_be_focused()
    for _ in range(8):
        looking.page.keyboard.press("Tab")
        assert looking.page.evaluate("() => Boolean(document.activeElement.closest('[role=dialog]'))")
        assert looking.page.evaluate(HAS_RING)
    looking.page.keyboard.press("Shift+Tab")
    assert looking.page.evaluate("() => Boolean(document.activeElement.closest('[role=dialog]'))")
    looking.press("Escape")
    expect(looking.dialog).to_have_count(0)
    expect(button).to_be_focused()


def test_something_is_done_by_keys_alone(looking, small):
    looking.go(f"/checkpoints/{step('kelp@5')}")
    looking.page.get_by_role("button", name="Pin", exact=True).focus()
    looking.press("Enter")
    expect(looking.dialog.get_by_label("Why")).to_be_focused()
    looking.page.keyboard.type("a good one")
    looking.press("Control+Enter")
    expect(looking.at("dialog-done")).to_be_visible()
    looking.press("Escape")
    expect(looking.at("chips").locator("[data-status=pinned]")).to_be_visible()
    assert [row.pinned for row in small.desk.service.list_checkpoints("kelp") if row.id.sequence == 5] == [
        True
    ]


def test_keys_are_left_alone_while_somebody_types(looking):
    looking.go("/runs")
    looking.page.get_by_label("Name has").fill("")
    looking.page.get_by_label("Name has").press_sequentially("gap?")
    expect(looking.page.get_by_label("Name has")).to_have_value("gap?")
    expect(looking.heading).to_have_text("Runs")
    expect(looking.dialog).to_have_count(0)


def test_views_of_a_run_are_changed_by_arrows(looking):
    looking.go("/runs/kelp")
    looking.page.get_by_role("tab", name="Timeline").focus()
    looking.press("ArrowRight")
    expect(looking.page.get_by_role("tab", name="Graph")).to_have_attribute("aria-selected", "true")
    expect(looking.page.get_by_role("tab", name="Graph")).to_be_focused()
    assert looking.route == "/runs/kelp?tab=graph"


def test_the_card_of_who_is_signed_in_goes_out_of_the_way(looking):
    card, summary = looking.page.locator(".who-card"), looking.page.locator("details.who summary")
    summary.click()
    expect(card).to_be_visible()
    looking.press("Escape")
    expect(card).not_to_be_visible()
    expect(summary).to_be_focused()
    summary.click()
    card.locator("p").first.click()
    expect(card).to_be_visible()
    looking.heading.click()
    expect(card).not_to_be_visible()
    summary.click()
    looking.go("/runs")
    expect(card).not_to_be_visible()
