"""The steps of a run as a graph, the family of its forks, and five hundred nodes."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.browsing import visit
from tests.browser.test_timeline import KEY_MS, READY_MS, asked_for
from tests.browser.told import tell

NODE_ELEMENTS_MAX = 10


def drawn(visited, run, name="steps"):
    """Go to the graph of a run, and wait until it is laid out."""
    visited.go(f"/runs/{run}?tab=graph")
    graph = visited.at(f"graph-{name}")
    expect(graph).to_have_attribute("data-ready", "true")
    return graph


def test_every_step_is_a_node_with_its_status_in_words(looking):
    graph = drawn(looking, "orders-17")
    nodes = graph.locator("[data-node]")
    assert int(graph.get_attribute("data-nodes")) == nodes.count() >= 5
    statuses = {nodes.nth(at).get_attribute("data-status") for at in range(nodes.count())}
    assert {"completed", "failed"} <= statuses
    for at in range(nodes.count()):
        expect(nodes.nth(at).locator(".state text")).to_contain_text(
            nodes.nth(at).get_attribute("data-status")
        )
    assert graph.locator("path.edge").count() >= 4


def test_a_status_can_be_hidden_with_its_edges_and_stays_so_in_the_address(looking):
    graph = drawn(looking, "orders-17")
    edges = graph.locator("path.edge").count()
    looking.page.get_by_role("button", name="failed", exact=False).first.click()
    expect(graph.locator("[data-status=failed]")).to_have_count(0)
    assert graph.locator("path.edge").count() < edges
    assert "hide=failed" in looking.route
    looking.page.reload()
    looking.settle()
    expect(looking.at("graph-steps").locator("[data-status=completed]").first).to_be_visible()
    expect(looking.at("graph-steps").locator("[data-status=failed]")).to_have_count(0)


def test_arrow_keys_walk_and_enter_shows_more(looking):
    graph = drawn(looking, "orders-17")
    first = graph.locator("[data-node][tabindex='0']")
    first.focus()
    before = first.get_attribute("data-node")
    looking.press("ArrowRight")
    chosen = graph.locator("[data-node]:focus")
    assert chosen.get_attribute("data-node") != before
    looking.press("Enter")
    expect(looking.at("step")).to_contain_text("Comes after")


def test_planned_steps_are_ghosts(looking):
    graph = drawn(looking, "payment-4")
    assert graph.locator("[data-node]").count() >= 2
    expect(graph.locator("[data-status=waiting]")).to_have_count(1)


def test_forks_are_a_family_and_lead_to_each_other(looking):
    family = drawn(looking, "kelp", "lineage")
    expect(family.locator("[data-node]")).to_have_count(2)
    family.locator("[data-node='kelp-what-if']").click()
    expect(looking.heading).to_have_text("kelp-what-if")
    expect(looking.page.locator("dl.facts", has_text="Forked from").first).to_contain_text("kelp@5")


def test_the_table_behind_it_has_every_step(looking):
    graph = drawn(looking, "orders-17")
    count = int(graph.get_attribute("data-nodes"))
    looking.page.get_by_text("Show as a table").first.click()
    expect(looking.page.locator("details.behind tbody tr[data-row]")).to_have_count(count)


def test_five_hundred_nodes_are_laid_out_and_answer_a_key(browser, large):
    with visit(browser, large) as visited:
        visited.page.goto("about:blank")
        asked = asked_for(visited, "/v1/runs/wide-graph/graph")
        graph = drawn(visited, "wide-graph")
        expect(graph).to_have_attribute("data-nodes", "500")
        ready_ms = visited.page.evaluate(READY_MS, "graph-ready")
        graph.locator("[data-node][tabindex='0']").focus()
        key_ms = visited.page.evaluate(KEY_MS, "ArrowRight")
        expect(graph.locator("[data-node].selected")).to_have_count(1)
        assert graph.locator(".ghost").count() >= 500
        # Asked for once, and each node is a handful of elements.
        assert len(asked) == 1
        assert graph.locator("[data-node] *").count() < 500 * NODE_ELEMENTS_MAX
        tell("graph", {"nodes": 500, "ready_ms": round(ready_ms), "key_ms": round(key_ms, 1)})
        visited.check()
