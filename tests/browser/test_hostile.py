"""Everything that people may write is text, wherever it is shown: nothing of it is ever obeyed."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.browsing import step, visit
from tests.browser.stores import HOSTILE
from tests.sizes import daily

#: Waits until somebody obeyed.
OBEYED = """() => new Promise((done) => {
  const look = () => (window.__pwned ? done() : setTimeout(look, 5));
  look();
})"""
NAMES = [f"wf {number} {text}"[:200] for number, text in enumerate(HOSTILE)]


@pytest.fixture
def looking(browser, hostile):
    """Somebody who looks at the hostile store."""
    with visit(browser, hostile) as visited:
        yield visited
        visited.check()


def test_pages_of_the_whole_store_obey_nothing(looking):
    for route in ("/", "/runs", "/audit", "/storage", "/quarantine", "/stats", "/about"):
        looking.go(route)
        looking.check()
    looking.go("/quarantine")
    looking.page.locator("main tbody tr[data-row] a").first.click()
    expect(looking.at("quarantined")).to_contain_text(HOSTILE[0])


@pytest.mark.parametrize("number", daily(range(len(HOSTILE)), range(3), otherwise=pytest.mark.whole_room))
def test_pages_of_a_run_obey_nothing(looking, number):
    name = NAMES[number]
    for route in (
        *(
            f"/runs/{step(name)}?tab={tab}"
            for tab in ("timeline", "graph", "checkpoints", "events", "report")
        ),
        f"/checkpoints/{step(f'{name}@2')}",
        f"/diff/{step(f'{name}@1')}..{step(f'{name}@2')}",
        f"/search?q={step(HOSTILE[number])}",
    ):
        looking.go(route)
        # What is in quarantine is not compared, and the browser itself tells of every refusal.
        looking.errors[:] = [error for error in looking.errors if "409" not in error]
        looking.check()
        assert looking.page.locator("main img, main iframe, main script").count() == 0
        links = looking.page.locator("main a")
        addresses = links.evaluate_all("(all) => all.map((one) => one.getAttribute('href'))")
        assert [one for one in addresses if one and not one.startswith(("#", "/v1/", "vendor/"))] == []


def test_what_it_says_is_shown_letter_by_letter(looking):
    looking.go(f"/runs/{step(NAMES[1])}")
    assert looking.heading.inner_text() == NAMES[1]
    looking.go(f"/checkpoints/{step(f'{NAMES[1]}@2')}?at=/messages/0/content")
    expect(looking.page.locator(".chosen pre").first).to_have_text(HOSTILE[1])


def test_dialogs_obey_nothing(looking):
    looking.go(f"/checkpoints/{step(f'{NAMES[1]}@2')}")
    for name in ("Recover from here", "Fork", "Pin", "Validate", "Replay up to here", "Set aside"):
        looking.page.get_by_role("button", name=name, exact=True).click()
        expect(looking.at("plan")).to_be_visible()
        looking.check()
        looking.press("Escape")
        expect(looking.dialog).to_have_count(0)
    looking.go("/storage")
    looking.page.get_by_role("button", name="Preview a prune").first.click()
    looking.dialog.locator("[name=workflow_id]").fill(NAMES[1])
    expect(looking.at("plan")).to_be_visible()


def test_events_and_entries_obey_nothing(looking, hostile):
    looking.go(f"/runs/{step(NAMES[0])}?tab=events")
    rows = looking.page.locator("main tbody tr[data-row]")
    expect(rows.first).to_be_visible()
    rows.first.locator("td").last.click()
    expect(looking.dialog).to_be_visible()
    looking.check()
    looking.press("Escape")
    entries = list(hostile.desk.service.audit.query_events(event_types=["NOTED"]))
    assert len(entries) == len(HOSTILE)
    looking.go("/audit?type=NOTED")
    looking.page.locator("main tbody tr[data-row] a").first.click()
    expect(looking.page.locator("main pre.raw").first).to_be_visible()


def test_a_page_that_trusts_its_text_would_obey_it(browser):
    """The negative control: this is what the mark looks like when somebody forgets to escape."""
    with browser.new_context() as context:
        page = context.new_page()
        page.set_content("<main></main>")
        page.evaluate("(text) => { document.querySelector('main').innerHTML = text; }", HOSTILE[1])
        page.wait_for_selector("main img", state="attached")
        page.evaluate(OBEYED)
        assert page.evaluate("() => window.__pwned") == 1


def test_the_servers_word_forbids_what_a_page_would_obey(browser, hostile):
    """Even if a page forgot to escape: the policy that is sent with it allows no script but its files."""
    with visit(browser, hostile) as visited:
        said = visited.page.request.get(f"{visited.base}/ui/").headers["content-security-policy"]
        assert "default-src 'none'" in said and "script-src 'self'" in said
        assert "unsafe" not in said
        visited.page.evaluate("(text) => { document.querySelector('main').innerHTML = text; }", HOSTILE[1])
        visited.page.wait_for_selector("main img", state="attached")
        visited.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))"
        )
        assert visited.page.evaluate("() => window.__pwned") is None
