"""On a small screen: nothing lies over what is read, what is current is in view, and no page is too wide."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.browsing import step, visit

PHONE = {"viewport": {"width": 390, "height": 844}}
ROUTES = [
    "/",
    "/runs",
    "/runs/kelp",
    "/runs/kelp?tab=graph",
    "/runs/kelp?tab=events",
    "/runs/kelp?tab=report",
    f"/checkpoints/{step('kelp@6')}",
    f"/diff/{step('kelp@3')}..{step('kelp@6')}",
    "/audit",
    "/audit/12",
    "/quarantine",
    "/storage",
    "/stats",
    "/about",
]


@pytest.mark.parametrize("route", ROUTES)
def test_no_page_is_wider_than_the_screen_and_where_one_is_can_be_seen(browser, small, route):
    with visit(browser, small, **PHONE) as visited:
        visited.go(route)
        page = visited.page
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
        for current in page.locator(".nav [aria-current], main [role=tab][aria-selected=true]").all():
            box = current.bounding_box()
            assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 390
        visited.check()


def test_the_tools_of_a_graph_lie_beside_it(browser, small):
    with visit(browser, small, **PHONE) as visited:
        visited.go("/runs/kelp?tab=graph")
        drawing = visited.at("graph-steps")
        expect(drawing).to_have_attribute("data-ready", "true")
        tools, drawn = drawing.locator(".graph-tools").bounding_box(), drawing.locator("svg").bounding_box()
        assert tools is not None and drawn is not None
        assert tools["y"] + tools["height"] <= drawn["y"]
        drawing.get_by_role("button", name="All").click()


def test_a_graph_says_how_much_of_it_is_outside(browser, small):
    with visit(browser, small, **PHONE) as visited:
        visited.go("/runs/orders-17?tab=graph")
        drawing, away = visited.at("graph-steps"), visited.at("away-steps")
        expect(drawing).to_have_attribute("data-ready", "true")
        tools, drawn = drawing.locator(".graph-tools").bounding_box(), drawing.bounding_box()
        assert tools is not None and drawn is not None and tools["x"] >= drawn["x"]
        middle = "node => { const box = node.getBoundingClientRect(); return box.x + box.width / 2; }"
        nodes = [node.evaluate(middle) for node in drawing.locator("[data-node] rect:first-of-type").all()]
        outside = [x for x in nodes if not drawn["x"] < x < drawn["x"] + drawn["width"]]
        assert outside
        expect(away).to_have_text(f"{len(outside)} of {len(nodes)} outside")
        drawing.get_by_role("button", name="All").click()
        expect(away).to_have_count(0)
        visited.check()


def test_a_table_that_goes_on_can_be_moved(browser, small):
    with visit(browser, small, **PHONE) as visited:
        visited.go("/audit")
        table = visited.page.locator(".table-box").last
        assert table.evaluate("node => node.scrollWidth > node.clientWidth")
        table.evaluate("node => { node.scrollLeft = node.scrollWidth; }")
        shown, last = table.bounding_box(), table.get_by_role("columnheader").last.bounding_box()
        assert shown is not None and last is not None
        assert last["x"] + last["width"] <= shown["x"] + shown["width"]


@pytest.mark.parametrize("width", [390, 900])
@pytest.mark.parametrize("route", ["/quarantine", "/stats"])
def test_why_something_is_told_is_read_without_moving_the_table(browser, small, route, width):
    with visit(browser, small, viewport={"width": width, "height": 844}) as visited:
        visited.go(route)
        table = visited.page.locator(".table-box").first
        expect(table.get_by_role("columnheader", name="Why")).to_be_visible()
        assert table.evaluate("node => node.scrollWidth <= node.clientWidth")
