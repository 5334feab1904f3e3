"""Whether people can use it: axe-core on every page in both themes, small screens, print, less motion."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from playwright.sync_api import expect

from tests.browser.browsing import step, visit
from tests.browser.test_pages import PAGES

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
SERIOUS = {"serious", "critical"}
#: All rules in one theme; in the other those that look at colours, for nothing else is different.
OPTIONS = {
    "light": {
        "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
        "resultTypes": ["violations"],
    },
    "dark": {
        "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
        "resultTypes": ["violations"],
    },
}
#: How much wider than the window the page is.
TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
#: The status that a badge stands for, what it says, and how many icons it has.
BADGES = """(all) => all.map((one) =>
  [one.dataset.status, one.textContent.trim(), one.querySelectorAll("svg").length])"""


def findings(page, scheme="light"):
    """Answer what axe-core finds serious or critical, each with the places it is found at."""
    if page.evaluate("() => window.axe === undefined"):
        page.evaluate(AXE)
    found = page.evaluate(
        "(options) => axe.run(document, options).then((all) => all.violations)", OPTIONS[scheme]
    )
    return [
        (one["id"], node["target"], node["failureSummary"])
        for one in found
        if one["impact"] in SERIOUS
        for node in one["nodes"][:3]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_finding(browser, small, scheme):
    with visit(browser, small, color_scheme=scheme, reduced_motion="reduce") as visited:
        found = {}
        for route in PAGES:
            visited.go(route)
            found[route] = findings(visited.page, scheme)
        visited.check()
    assert {route: some for route, some in found.items() if some} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_dialog_has_a_serious_finding(browser, small, scheme):
    with visit(browser, small, color_scheme=scheme, reduced_motion="reduce") as visited:
        visited.go(f"/checkpoints/{step('kelp@6')}")
        for name in ("Recover from here", "Fork"):
            visited.page.get_by_role("button", name=name, exact=True).click()
            expect(visited.at("plan")).to_be_visible()
            assert findings(visited.page, scheme) == []
            visited.press("Escape")
        visited.press("?")
        expect(visited.dialog).to_be_visible()
        assert findings(visited.page, scheme) == []
        visited.check()


def test_an_empty_store_and_the_sign_in_have_no_serious_finding(browser, empty):
    with visit(browser, empty) as visited:
        visited.go("/")
        assert findings(visited.page) == []
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{empty.url}/ui/")
        expect(page.get_by_test_id("sign-in")).to_be_visible()
        assert findings(page) == []


def test_a_fault_of_contrast_would_be_found(browser, small):
    """The negative control: what is checked above can go red."""
    with visit(browser, small) as visited:
        visited.page.evaluate(
            """() => {
              const said = document.createElement("p");
              said.textContent = "hardly to be seen";
              said.style.color = "#eee";
              said.style.backgroundColor = "#fff";
              document.querySelector("main").append(said);
            }"""
        )
        assert "color-contrast" in {rule for rule, *_ in findings(visited.page)}


def test_less_motion_is_none(browser, small):
    moving = """() => document.getAnimations()
      .filter((one) => one.effect.getComputedTiming().duration > 20).length"""
    with visit(browser, small, reduced_motion="reduce") as visited:
        for route in ("/", "/runs/kelp"):
            visited.go(route)
            assert visited.page.evaluate(moving) == 0
        longest = visited.page.evaluate(
            """() => Math.max(...[...document.querySelectorAll("*")].map((node) =>
              Math.max(...getComputedStyle(node).transitionDuration.split(",").map(parseFloat))))"""
        )
        assert longest <= 0.02


def test_a_status_is_told_by_a_word_and_an_icon(looking):
    for route in ("/", "/runs", "/runs/orders-17", "/quarantine", "/audit"):
        looking.go(route)
        badges = looking.page.locator("main [data-status].badge").evaluate_all(BADGES)
        assert badges, route
        for status, said, icons in badges:
            assert (said, icons) == (status.replace("_", " "), 1)


@pytest.mark.parametrize(
    ("name", "size"), [("phone", {"width": 390, "height": 800}), ("zoomed", {"width": 640, "height": 400})]
)
def test_nothing_has_to_be_scrolled_sideways(browser, small, name, size):
    """640 pixels are what is left of 1280 for whoever makes everything twice as large."""
    with visit(browser, small, viewport=size, reduced_motion="reduce") as visited:
        wide = {}
        for route in PAGES:
            visited.go(route)
            wide[route] = visited.page.evaluate(TOO_WIDE)
        visited.check()
    assert {route: more for route, more in wide.items() if more > 0} == {}, name


@pytest.mark.parametrize("route", ["/runs/kelp", "/audit"])
def test_print_has_what_is_read_and_not_what_is_pressed(looking, route):
    looking.go(route)
    looking.page.emulate_media(media="print")
    expect(looking.heading).to_be_visible()
    for gone in ("header.top", "nav.nav"):
        expect(looking.page.locator(gone)).not_to_be_visible()
    # On paper it is dark on light, whatever the screen is.
    colours = looking.page.evaluate(
        "() => [document.body, document.querySelector('h1')].map(getComputedStyle)"
        ".map((style, at) => at ? style.color : style.backgroundColor)"
    )
    light, dark = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours)
    assert dark < 200
    assert light > 600 or colours[0].endswith(", 0)")
    assert looking.page.evaluate(TOO_WIDE) <= 0


@pytest.mark.parametrize("route", ["/runs", "/runs/kelp?tab=checkpoints", "/audit", "/storage"])
def test_tables_fit_on_paper_and_times_are_told_there(browser, small, route):
    """720 pixels are what an A4 page has beside its margins."""
    with visit(browser, small, viewport={"width": 720, "height": 1000}) as visited:
        visited.go(route)
        visited.page.emulate_media(media="print")
        assert visited.page.evaluate(TOO_WIDE) <= 0
        # Words are not broken into letters to make it so.
        for row in visited.page.locator("main tbody tr[data-row]").all()[:5]:
            box = row.bounding_box()
            assert box is not None and box["height"] < 120
        visited.check()


def test_times_are_relative_with_local_and_utc_on_hover(looking):
    looking.go("/runs")
    expect(looking.page.locator("main time").first).to_have_attribute(
        "title", re.compile(r"\(here\)\n.+Z \(UTC\)")
    )
    looking.go("/audit")
    ages = looking.page.locator("main tbody time").all_inner_texts()
    # The newest were made since the page was opened; none of them lies ahead.
    assert [age for age in ages if not re.fullmatch(r"now|\d+ \w+ ago", age)] == []


def test_the_theme_is_chosen_and_stays(looking):
    root = looking.page.locator("html")
    looking.press("t")
    expect(root).to_have_attribute("data-theme", "light")
    looking.press("t")
    expect(root).to_have_attribute("data-theme", "dark")
    looking.page.reload()
    looking.settle()
    expect(root).to_have_attribute("data-theme", "dark")
    looking.press("t")
    expect(root).not_to_have_attribute("data-theme", re.compile(".*"))
