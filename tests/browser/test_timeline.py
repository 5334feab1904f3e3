"""The timeline of a run: lanes, spans, dots, minimap and keys; and with ten thousand checkpoints."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.browsing import visit
from tests.browser.conftest import CHECKPOINTS
from tests.browser.told import tell

#: From the beginning of the page to a mark that it sets, and from a key to the frame that shows it.
READY_MS = "(mark) => performance.getEntriesByName(mark).at(-1).startTime"
KEY_MS = """(key) => new Promise((done) => {
  const begun = performance.now();
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begun)));
})"""


def range_of(timeline):
    """Answer which milliseconds are seen."""
    return float(timeline.get_attribute("data-from")), float(timeline.get_attribute("data-until"))


#: So many elements are enough for a page with a canvas, however much is drawn on it.
ELEMENTS_MAX = 1_000


def asked_for(visited, ending):
    """Remember from now on which requests have an address with that end."""
    found = []
    visited.page.on("request", lambda one: found.append(one.url) if one.url.endswith(ending) else None)
    return found


def drawn(visited, route):
    """Go to a run, and wait until its timeline is drawn."""
    visited.go(route)
    timeline = visited.at("timeline")
    expect(timeline).to_have_attribute("data-ready", "true")
    return timeline


def pixels(canvas):
    """Count the colours of a canvas: one that is blank has one."""
    return canvas.evaluate(
        """(node) => {
          const data = node.getContext("2d").getImageData(0, 0, node.width, node.height).data;
          const found = new Set();
          for (let at = 0; at < data.length; at += 4) found.add(data.slice(at, at + 4).join());
          return found.size;
        }"""
    )


def test_every_agent_has_a_lane_and_every_checkpoint_a_dot(looking, small):
    timeline = drawn(looking, "/runs/kelp")
    count = len(small.desk.service.list_checkpoints("kelp"))
    expect(timeline).to_have_attribute("data-checkpoints", str(count))
    agents = {row.agent_id for row in small.desk.service.list_checkpoints("kelp") if row.agent_id}
    assert int(timeline.get_attribute("data-lanes")) >= len(agents)
    assert pixels(timeline.locator("canvas").first) > 8
    assert pixels(looking.at("minimap")) > 2


def test_keys_zoom_and_move_it(looking):
    timeline = drawn(looking, "/runs/kelp")
    first, last = range_of(timeline)
    looking.press("+", "+")
    begin, end = range_of(timeline)
    assert first < begin < end < last
    looking.press("ArrowLeft")
    earlier = range_of(timeline)
    assert earlier[0] < begin and earlier[1] < end
    looking.press("-")
    wider = range_of(timeline)
    assert wider[1] - wider[0] > end - begin
    looking.press("0")
    assert range_of(timeline) == (first, last)


def test_the_wheel_and_the_minimap_move_it(looking):
    timeline = drawn(looking, "/runs/kelp")
    whole = range_of(timeline)
    canvas = timeline.locator("canvas").first
    canvas.hover()
    looking.page.keyboard.down("Control")
    looking.page.mouse.wheel(0, -400)
    looking.page.keyboard.up("Control")
    expect(timeline).not_to_have_attribute("data-until", str(int(whole[1])))
    seen = range_of(timeline)
    assert seen[1] - seen[0] < whole[1] - whole[0]
    box = looking.at("minimap").bounding_box()
    looking.page.mouse.click(box["x"] + box["width"] - 4, box["y"] + box["height"] / 2)
    expect(timeline).to_have_attribute("data-until", str(int(whole[1])))


def test_brackets_choose_a_checkpoint_and_enter_opens_it(looking):
    timeline = drawn(looking, "/runs/support-chat")
    timeline.locator("canvas").first.focus()
    looking.press("]", "]", "]", "[")
    expect(timeline).to_have_attribute("data-selected", "2")
    expect(looking.page.locator("main [role=status]", has_text="Checkpoint 2")).to_be_attached()
    looking.press("Enter")
    expect(looking.heading).to_have_text("Checkpoint 2")
    assert looking.route.startswith("/checkpoints/support-chat%402")


def test_a_dot_says_what_it_is_and_opens_when_clicked(looking):
    timeline = drawn(looking, "/runs/support-chat")
    box = timeline.locator("canvas").first.bounding_box()
    hover = looking.at("hover")

    def found():
        for y in range(40, int(box["height"]), 6):
            for x in range(int(box["width"]) - 30, 150, -9):
                looking.page.mouse.move(box["x"] + x, box["y"] + y)
                if hover.count() and "Checkpoint @" in hover.inner_text():
                    return hover.inner_text().partition("@")[2].split()[0]
        return None

    number = found()
    assert number is not None
    looking.page.mouse.down()
    looking.page.mouse.up()
    expect(looking.heading).to_have_text(f"Checkpoint {number}")


def test_the_legend_tells_of_everything_that_is_drawn(looking):
    drawn(looking, "/runs/orders-17")
    legend = looking.page.get_by_role("note", name="Legend")
    for said in ("close together (lines)", "cut off by a kill (bar)", "stopped", "running"):
        expect(legend).to_contain_text(said)


def test_the_tables_behind_it_have_the_same(looking, small):
    drawn(looking, "/runs/orders-17")
    looking.page.get_by_text("Show as tables").click()
    rows = looking.page.locator("details.behind tbody tr[data-row]")
    expect(rows).to_have_count(len(small.desk.service.list_checkpoints("orders-17")))
    looking.page.get_by_role("tab", name="Steps").click()
    ship = looking.page.locator("details.behind tbody tr[data-row]", has_text="ship")
    expect(ship.locator(".badge")).to_have_text("gave up")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_drawn_in_the_colours_of_the_theme(browser, small, scheme):
    with visit(browser, small, color_scheme=scheme) as visited:
        timeline = drawn(visited, "/runs/kelp")
        light = timeline.locator("canvas").first.evaluate(
            "(node) => node.getContext('2d').getImageData(4, node.height - 4, 1, 1).data[0]"
        )
        assert (light > 200) == (scheme == "light")


def test_ten_thousand_checkpoints_are_drawn_and_answer_a_key(browser, large):
    with visit(browser, large) as visited:
        page = visited.page
        page.goto("about:blank")
        asked = asked_for(visited, "/v1/runs/long-run/timeline")
        page.goto(f"{visited.base}/ui/#/runs/long-run")
        timeline = visited.at("timeline")
        expect(timeline).to_have_attribute("data-ready", "true")
        expect(timeline).to_have_attribute("data-checkpoints", str(CHECKPOINTS))
        expect(timeline).to_have_attribute("data-lanes", "5")
        ready_ms = page.evaluate(READY_MS, "timeline-ready")
        whole = range_of(timeline)
        key_ms = page.evaluate(KEY_MS, "+")
        expect(timeline).not_to_have_attribute("data-until", str(int(whole[1])))
        seen = range_of(timeline)
        assert seen[1] - seen[0] < whole[1] - whole[0]
        # Asked for once, drawn on a canvas: moving through it costs the server nothing, and no element.
        assert len(asked) == 1
        assert page.locator("*").count() < ELEMENTS_MAX
        figures = {"checkpoints": CHECKPOINTS, "ready_ms": round(ready_ms), "key_ms": round(key_ms, 1)}
        tell("timeline", figures)
        visited.check()


def test_other_pages_of_ten_thousand_checkpoints_open_and_draw_what_is_seen(browser, large):
    with visit(browser, large) as visited:
        for route in ("/", "/runs", "/storage", "/stats", "/audit", "/quarantine", "/search?q=long"):
            visited.go(route)
            expect(visited.page.locator("main .problem[role=alert]")).to_have_count(0)
        visited.go("/runs/long-run?tab=checkpoints")
        rows = visited.page.locator("main tbody tr[data-row]")
        expect(rows.first).to_contain_text(f"@{CHECKPOINTS}")
        assert rows.count() < 300
        visited.go("/runs/long-run?tab=graph")
        expect(visited.heading).to_have_text("long-run")
        visited.go("/runs/long-run?tab=report")
        expect(visited.at("report")).to_be_visible()
        visited.check()
