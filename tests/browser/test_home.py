"""What needs somebody, most urgent first, and how the page hears of changes."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

import holdfast
from holdfast.application.insight.runs import RunBook
from tests.browser.browsing import visit
from tests.server.served import running

#: What comes first is what cannot wait.
URGENCY = ["crashed", "unreadable", "failed", "recovered", "waiting", "quarantined", "unanchored"]


def change(served, workflow_id, state):
    """Make a checkpoint as another process would: through a service of its own."""
    with holdfast.open(served.desk.kit.store.url, actor="bob", retain=False) as service:
        service.create_checkpoint(workflow_id, state)


def planned_by(command):
    """Answer the plan of a command that recovers, as the command line tells it."""
    words = [sys.executable, "-m", *shlex.split(command), "--plan", "--json"]
    return json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def live(visited, state):
    """Wait for what the mark in the corner says."""
    expect(visited.at("live")).to_have_attribute("data-state", state)


def test_what_is_urgent_comes_first_and_each_has_one_primary_action(looking):
    needs = looking.at("need")
    expect(needs.first).to_be_visible()
    kinds = [needs.nth(at).get_attribute("data-kind") for at in range(needs.count())]
    assert kinds == sorted(kinds, key=URGENCY.index)
    assert {"crashed", "failed", "waiting", "quarantined"} <= set(kinds)
    for at in range(needs.count()):
        primary = needs.nth(at).locator(".button.primary")
        assert primary.count() == (0 if kinds[at] == "unanchored" else 1), kinds[at]
        expect(needs.nth(at).locator(".command code")).to_contain_text("holdfast ")
    for at in [at for at, kind in enumerate(kinds) if kind in ("crashed", "failed", "waiting")]:
        name = needs.nth(at).locator(".need-name").inner_text()
        needs.nth(at).locator(".button.primary").click()
        expect(looking.dialog.get_by_role("heading", level=2)).to_contain_text(name)
        looking.press("Escape")
        expect(looking.dialog).to_have_count(0)


@pytest.mark.parametrize(
    ("kind", "opens"),
    [("crashed", "Recover support-chat"), ("failed", "Resume orders-17"), ("waiting", "Answer payment-4")],
)
def test_the_primary_action_opens_what_it_says(looking, kind, opens):
    run = opens.partition(" ")[2]
    looking.page.locator(f"[data-testid=need][data-kind={kind}]", has_text=run).get_by_role(
        "button", name=opens
    ).click()
    expect(looking.dialog.get_by_role("heading", level=2)).to_have_text(opens)


def test_recover_on_home_plans_what_the_command_beside_it_would_do(browser, small):
    with holdfast.open(small.desk.kit.store.url, actor="bob", retain=False) as service:
        for number in range(2):
            service.create_checkpoint("replayed", {"context": {"n": number}})
        for number in range(3):
            service.append_event("replayed", "CONTEXT_UPDATED", {"context": {f"after-{number}": True}})
        service.acquire_lease("replayed", "worker-1", ttl_seconds=0)
    with visit(browser, small) as visited:
        row = visited.page.locator("[data-testid=need][data-kind=crashed]", has_text="replayed")
        command = row.locator(".command code").get_attribute("title")
        row.get_by_role("button", name="Recover replayed").click()
        expect(visited.dialog.get_by_label("From")).to_have_value("latest")
        planned = planned_by(command)
        assert (planned["checkpoint"], planned["replayed"]) == ("replayed@2", 3)
        expect(visited.at("plan")).to_contain_text("replayed@2")
        expect(visited.at("plan")).to_contain_text(f"{planned['replayed']} of {planned['events']}")
        visited.check()


def test_what_was_recovered_and_not_resumed_stays_until_somebody_goes_on(browser, small):
    with holdfast.open(small.desk.kit.store.url, actor="bob", retain=False) as service:
        service.create_checkpoint("halfway", {"n": 1})
        service.append_event("halfway", "RUN_UPDATED", {"fields": {"status": "in_progress"}}, step_id="run")
        service.acquire_lease("halfway", "worker-1", ttl_seconds=0)
    small.desk.service.recover_workflow("halfway")
    with visit(browser, small) as visited:
        row = visited.page.locator("[data-testid=need]", has_text="halfway")
        expect(row).to_have_attribute("data-kind", "recovered")
        expect(row).to_contain_text("nobody went on with it")
        row.get_by_role("button", name="Resume halfway").click()
        expect(visited.dialog.locator(".command code").first).to_contain_text("holdfast resume halfway")
        visited.press("Escape")
        visited.go("/runs/halfway")
        expect(visited.page.get_by_role("button", name="Resume", exact=True)).to_be_enabled()
        visited.check()


def test_the_last_good_checkpoint_is_none_that_lies_in_quarantine(browser, small):
    with holdfast.open(small.desk.kit.store.url, actor="bob", retain=False) as service:
        for number in range(2):
            service.create_checkpoint("shelf", {"n": number})
        service.quarantine.put("shelf", 2, "the checksum does not fit")
        lease = service.acquire_lease("shelf", "worker-1", ttl_seconds=3600)
        with visit(browser, small) as visited:
            row = visited.page.get_by_role("region", name="Runs at work now").locator("tr", has_text="shelf")
            expect(row.get_by_role("link", name="@1", exact=True)).to_be_visible()
            visited.go("/runs/shelf")
            fact = visited.page.locator("dl.facts > div", has_text="Last good checkpoint")
            expect(fact.locator("dd")).to_contain_text("@1")
            service.quarantine.put("shelf", 1, "the checksum does not fit")
            visited.page.reload()
            visited.settle()
            expect(fact.locator("dd")).to_have_text("none")
            visited.check()
        service.release_lease(lease)


def test_what_is_in_quarantine_leads_to_its_evidence(looking):
    ledger = looking.page.locator("[data-testid=need][data-kind=quarantined]", has_text="ledger")
    ledger.locator(".button.primary").click()
    expect(looking.heading).to_have_text("Quarantine")
    expect(looking.at("quarantined")).to_contain_text("the checksum does not fit")


def test_figures_lead_to_the_runs_of_that_status(looking):
    looking.page.locator("main .figures").get_by_role("link", name="failed").click()
    expect(looking.page.locator("main tbody tr[data-row]")).to_have_count(1)
    assert looking.route == "/runs?status=failed"


def test_what_another_process_does_appears_without_a_reload(browser, small):
    with visit(browser, small) as visited:
        live(visited, "live")
        visited.go("/runs")
        visited.page.evaluate("() => { window.__same = true; }")
        change(small, "night-shift", {"n": 1})
        expect(visited.page.get_by_role("link", name="night-shift")).to_be_visible()
        assert visited.page.evaluate("() => window.__same") is True
        visited.check()


def test_paused_holds_back_and_says_how_much(browser, small):
    with visit(browser, small) as visited:
        visited.go("/runs")
        live(visited, "live")
        visited.at("live").click()
        live(visited, "paused")
        change(small, "held-back", {"n": 1})
        expect(visited.at("live")).to_contain_text("new")
        expect(visited.page.get_by_role("link", name="held-back")).to_have_count(0)
        visited.press("p")
        expect(visited.page.get_by_role("link", name="held-back")).to_be_visible()
        live(visited, "live")
        visited.check()


def test_the_mark_goes_stale_with_the_server_and_comes_back_with_it(browser, tmp_path):
    url = f"file:{tmp_path}/store"
    holdfast.open(url).close()
    with ExitStack() as first:
        served = first.enter_context(running(url, actor="ann"))
        with visit(browser, served) as visited:
            visited.go("/runs")
            live(visited, "live")
            first.close()
            live(visited, "stale")
            expect(visited.at("live")).to_contain_text(re.compile("Stale (since|for) "))
            with running(url, port=served.desk.settings.port, actor="ann") as back:
                # As after a break of the line: whoever was signed in still is.
                back.desk.doorkeeper.key = served.desk.doorkeeper.key
                back.desk.doorkeeper.cookie = served.desk.doorkeeper.cookie
                back.desk.doorkeeper.sessions = served.desk.doorkeeper.sessions
                live(visited, "live")
                change(back, "after-the-break", {"n": 1})
                expect(visited.page.get_by_role("link", name="after-the-break")).to_be_visible()


def test_a_server_that_was_started_again_asks_who_is_there(browser, tmp_path):
    url = f"file:{tmp_path}/store"
    holdfast.open(url).close()
    with ExitStack() as first:
        served = first.enter_context(running(url, actor="ann"))
        with visit(browser, served) as visited:
            live(visited, "live")
            first.close()
            live(visited, "stale")
            with running(url, port=served.desk.settings.port, actor="ann"):
                expect(visited.at("sign-in")).to_be_visible()


def test_a_store_of_very_many_runs_says_that_it_is_still_looked_at(browser, tmp_path):
    url = f"file:{tmp_path}/store"
    with holdfast.open(url) as service:
        for number in range(3):
            service.create_checkpoint(f"run-{number}", {})
    with running(url) as served:
        # One workflow for each request.
        served.desk.runs = RunBook(served.desk.kit, first_seconds=0.0, sweep_seconds=0.0)
        with visit(browser, served) as visited:
            expect(visited.at("unfinished")).to_contain_text("there are more")
            expect(visited.at("unfinished")).to_have_count(0)
            expect(visited.page.get_by_role("group", name="Runs by status")).to_contain_text("3")


@pytest.mark.parametrize(("hours", "said"), [(73, "3 days ahead of"), (-73, "3 days behind")])
def test_a_clock_that_differs_from_that_of_the_server_is_told(browser, small, hours, said):
    with visit(browser, small) as visited:
        expect(visited.page.get_by_text("Clocks differ")).to_have_count(0)
        visited.page.clock.set_fixed_time(datetime.now(UTC) + timedelta(hours=hours))
        visited.page.reload()
        visited.settle()
        expect(visited.page.get_by_role("status").filter(has_text="Clocks differ")).to_contain_text(said)
