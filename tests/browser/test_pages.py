"""Every page opens: on an empty store, on a small and on a large one, by its address alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.browsing import step, visit
from tests.named_tests import ROOT
from tests.sizes import daily

#: Every kind of page with an address that the small store answers, and its heading.
PAGES = {
    "/": "What needs you",
    "/runs": "Runs",
    "/runs/kelp": "kelp",
    "/runs/kelp?tab=graph": "kelp",
    "/runs/kelp?tab=checkpoints": "kelp",
    "/runs/kelp?tab=events": "kelp",
    "/runs/kelp?tab=report": "kelp",
    f"/checkpoints/{step('kelp@12')}": "Checkpoint 12",
    f"/diff/{step('kelp@8')}..{step('kelp@12')}": "Difference",
    "/audit": "Audit trail",
    "/audit/3": "Entry 3",
    "/storage": "Storage",
    "/quarantine": "Quarantine",
    "/stats": "Statistics",
    "/search?q=kelp": "Search: kelp",
    "/about": "About",
}
#: What a store with nothing in it has pages of.
BARE = [route for route in PAGES if "kelp" not in route and route != "/audit/3"]


def opened(visited, routes):
    """Open pages one after the other; each has its heading and no problem."""
    for route in routes:
        visited.go(route)
        expect(visited.heading).to_have_text(PAGES[route])
        expect(visited.page.locator("main .problem[role=alert]")).to_have_count(0)
        assert visited.errors == [], route


def test_the_table_of_routes_has_no_page_that_is_not_opened_here():
    """A new page has to be added to these tests."""
    text = (ROOT / "src/holdfast/server/ui/main.js").read_text("utf-8")
    patterns = re.findall(r'pattern: "([^"]+)"', text)
    shapes = [re.sub(r":\w+", r"[^/]+?", pattern.replace("..", r"\.\.")) for pattern in patterns]
    paths = [route.partition("?")[0] for route in PAGES]
    assert len(patterns) >= 12
    assert [shape for shape in shapes if not any(re.fullmatch(shape, path) for path in paths)] == []


def test_every_page_opens_on_a_small_store(looking):
    opened(looking, PAGES)


def test_every_page_opens_on_an_empty_store(browser, empty):
    with visit(browser, empty) as visited:
        opened(visited, BARE)
        visited.go("/")
        expect(visited.page.locator("main .empty .command code")).to_have_text("holdfast demo")
        visited.check()


def test_a_listing_that_failed_is_not_called_empty(browser, empty):
    with visit(browser, empty) as visited:
        refusal = '{"detail": "the store cannot be read", "code": "store_unreadable"}'
        visited.page.route("**/v1/runs?*", lambda route: route.fulfill(status=503, body=refusal))
        visited.go("/runs")
        expect(visited.page.locator("main .problem[role=alert]")).to_contain_text("the store cannot be read")
        expect(visited.page.locator("main .empty")).to_have_count(0)


def test_a_run_that_is_not_there_leads_to_those_that_are(browser, small):
    with visit(browser, small) as visited:
        visited.go("/runs/atlantis")
        problem = visited.page.locator("main .problem[role=alert]").first
        expect(problem).to_contain_text("there is no such workflow")
        expect(problem).not_to_contain_text("GET /v1")
        expect(problem.get_by_role("button", name="Try again")).to_have_count(0)
        problem.get_by_role("link", name="All runs").click()
        expect(visited.heading).to_have_text("Runs")


def test_a_lease_that_ran_out_is_not_called_given_up(looking):
    looking.go("/runs/support-chat")
    expect(looking.page.locator("main")).to_contain_text("ran out; worker-1 had it")
    expect(looking.page.locator("main")).not_to_contain_text("given up")


#: Addresses that are opened anew, and those that lead nowhere; one of each is enough every day.
DEEP = ["/runs/kelp?tab=graph", f"/checkpoints/{step('kelp@12')}", "/audit/3"]
LOST = [f"/checkpoints/{step('kelp@999')}", "/audit/999999", "/quarantine?name=nothing"]


@pytest.mark.parametrize("route", daily(DEEP, DEEP[:1], otherwise=pytest.mark.whole_room))
def test_a_deep_link_survives_a_reload(looking, route):
    looking.go(route)
    looking.page.reload()
    looking.settle()
    assert looking.route == route
    expect(looking.heading).to_have_text(PAGES[route])


def test_the_key_leaves_the_address_before_anybody_can_see_it(looking):
    assert "key" not in looking.page.url
    looking.go("/runs")
    looking.page.go_back()
    looking.settle()
    assert "key" not in looking.page.url


def test_filters_live_in_the_address_and_survive_back_and_forward(looking):
    looking.go("/runs?status=failed")
    rows = looking.page.locator("main tbody tr[data-row]")
    expect(rows).to_have_count(1)
    looking.page.get_by_role("button", name="waiting", exact=True).click()
    expect(rows).to_have_count(2)
    assert looking.route == "/runs?status=failed%2Cwaiting"
    looking.page.get_by_role("link", name="orders-17").first.click()
    expect(looking.heading).to_have_text("orders-17")
    looking.page.go_back()
    expect(looking.heading).to_have_text("Runs")
    expect(rows).to_have_count(2)
    looking.page.go_forward()
    expect(looking.heading).to_have_text("orders-17")
    looking.page.go_back()
    looking.page.reload()
    looking.settle()
    expect(rows).to_have_count(2)
    expect(looking.page.get_by_role("button", name="waiting", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )


def test_an_unknown_address_says_so_and_leads_home(looking):
    looking.go("/nowhere")
    expect(looking.heading).to_have_text("There is no such page")
    looking.page.locator("main").get_by_role("link").first.click()
    expect(looking.heading).to_have_text("What needs you")


@pytest.mark.parametrize("route", daily(LOST, LOST[:1], otherwise=pytest.mark.whole_room))
def test_an_unknown_name_says_what_is_not_there(browser, small, route):
    with visit(browser, small) as visited:
        visited.go(route)
        problem = visited.page.locator("main .problem[role=alert]").first
        expect(problem.locator(".problem-title")).not_to_be_empty()
        expect(problem.get_by_role("button", name="Try again")).to_be_visible()
        # The browser itself tells of every answer that is no success.
        assert all("404" in error for error in visited.errors)


def test_an_old_key_that_is_pasted_into_an_open_page_is_refused_in_words(browser, small):
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{small.url}/ui/")
        expect(page.get_by_test_id("sign-in")).to_be_visible()
        command = page.locator(".command code")
        assert command.evaluate("(code) => code.scrollWidth <= code.clientWidth")
        page.evaluate("() => { location.hash = '#key=hf_old'; }")
        expect(page.locator(".problem-title")).to_be_visible()


def test_without_a_token_the_page_asks_for_one(browser, small):
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{small.url}/ui/#/runs")
        expect(page.get_by_test_id("sign-in")).to_be_visible()
        page.get_by_label("Token").fill("hf_wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator(".problem-title")).to_be_visible()
        page.get_by_label("Token").fill(small.desk.service.tokens.create("bob", ("viewer",))[1])
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("main h1")).to_have_text("Runs")
        page.locator("details.who summary").click()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_test_id("sign-in")).to_be_visible()
        expect(page.locator(".problem-title")).to_have_count(0)
