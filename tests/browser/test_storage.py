"""What the store takes, and when it will be full."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.browsing import visit

UNITS = ("B", "kB", "MB", "GB")
#: Label of a part: its bytes in full, as they stand behind what is shown.
BY_KIND = """(card) => Object.fromEntries([...card.querySelector("ul").children].map((item) =>
  [[...item.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.textContent)
    .join("").trim(), item.querySelector("[title]").title]))"""


def bytes_text(size):
    """Write bytes as the page does: three digits and a unit."""
    unit = 0
    while size >= 999.5 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.{0 if unit == 0 or size >= 100 else 1 if size >= 10 else 2}f} {UNITS[unit]}"


def seen(visited):
    """Go to the page of storage; answer what the server told it, and the label and value of each figure."""
    visited.go("/about")
    with visited.page.expect_response("**/v1/stats/storage") as told:
        visited.go("/storage")
    figures = visited.at("storage-figures").locator(".number")
    expect(figures).to_have_count(5)
    shown = [figures.nth(at) for at in range(5)]
    by_label = {
        one.locator(".number-label").inner_text().rstrip(" ?\n"): (
            one.locator(".number-value").inner_text(),
            one.locator(".number-note").inner_text(),
        )
        for one in shown
    }
    return told.value.json(), by_label


def test_bytes_are_told_by_run_and_kind_and_what_could_go(looking, small):
    use, figures = seen(looking)
    service = small.desk.service
    kept = {name: service.list_checkpoints(name, 1_000) for name in service.workflows()}
    count = sum(map(len, kept.values()))
    assert use["checkpoints"] == count and use["state_bytes"] > use["stored_bytes"] > 0
    assert figures["Store"] == (bytes_text(use["bytes"]), f"{count} checkpoints, {len(kept)} runs")
    whole, stored = bytes_text(use["state_bytes"]), bytes_text(use["stored_bytes"])
    ratio = use["state_bytes"] / use["stored_bytes"]
    assert figures["Whole to stored"] == (f"{ratio:.1f}×", f"{whole} whole, {stored} stored")
    assert figures["Could go"][0] == bytes_text(use["reclaimable_bytes"])
    assert figures["Could go"][1].startswith(f"{use['reclaimable']} checkpoints")
    rows = looking.page.get_by_role("region", name="Bytes by run").locator("tbody tr[data-row]")
    expect(rows).to_have_count(len(kept))
    for one in use["workflows"]:
        row = rows.filter(has=looking.page.get_by_role("link", name=one["workflow_id"], exact=True))
        expect(row.locator("td").nth(1)).to_have_text(str(len(kept[one["workflow_id"]])))
        expect(row.locator("td").nth(2)).to_have_text(bytes_text(one["record_bytes"] + one["keyframe_bytes"]))


def test_kinds_add_up_and_what_is_tiny_is_one_part(looking):
    use, _ = seen(looking)
    kinds = looking.page.locator("main .card", has=looking.page.get_by_role("heading", name="By kind"))
    expect(kinds.get_by_role("img")).to_be_visible()
    shown = {name: int(told.split()[0].replace(",", "")) for name, told in kinds.evaluate(BY_KIND).items()}
    told = {name.replace("_", " "): size for name, size in use["kinds"].items() if size}
    other = "other"
    assert sum(shown.values()) == sum(told.values())
    assert {name: told[name] for name in shown if name != other} == {
        name: size for name, size in shown.items() if name != other
    }
    assert all(told[name] >= sum(told.values()) / 100 for name in shown if name != other)
    colours = kinds.locator(".key").evaluate_all("(keys) => keys.map((key) => key.className)")
    assert len(set(colours)) == len(colours) == len(shown)


def test_a_long_name_leaves_room_for_what_can_be_done(browser, small):
    small.desk.service.create_checkpoint("W" * 190, {"n": 1})
    for width in (1440, 1024):
        with visit(browser, small, viewport={"width": width, "height": 900}) as visited:
            visited.go("/storage")
            box = visited.page.get_by_role("region", name="Bytes by run")
            assert box.evaluate("(box) => box.scrollWidth <= box.clientWidth"), width


def test_only_what_is_in_force_in_quarantine_is_an_alarm(browser, small):
    service = small.desk.service
    with visit(browser, small) as visited:
        use, figures = seen(visited)
        tile = visited.at("storage-figures").locator(".number", has_text="Quarantine")
        assert figures["Quarantine"] == (bytes_text(use["quarantine_bytes"]), "1 in force, 0 released")
        expect(tile).to_have_class("number bad")
        [kept] = service.quarantine.entries()
        service.quarantine.release(kept.name, "it was fine")
        _, figures = seen(visited)
        assert figures["Quarantine"][1] == "0 in force, 1 released"
        expect(tile).to_have_class("number ")
        visited.check()


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
