"""What acts: each dialog shows the plan first and the equal command, wants a reason, and is done once."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

import holdfast
from tests.browser.browsing import step, visit

WHY = "because the test says so"


@pytest.fixture
def served(small):
    """The server, with what was told before left out of what is looked at."""
    small.desk.service.flush()
    return small


@contextmanager
def acting(browser, served, **more):
    """Somebody who acts; what the browser itself says of refusals is no fault of the page."""
    with visit(browser, served, **more) as visited:
        yield visited
        assert [error for error in visited.errors if "status of 4" not in error] == []
        assert visited.foreign == []


def told(served, operation):
    """Answer what the trail tells of an operation that was asked for here: who, and why."""
    served.desk.service.flush()
    entries = served.desk.service.audit.query_events(event_types=["REQUEST_MADE"])
    return [
        (one.actor, one.data["reason"])
        for one in entries
        if (one.facts.get("operation"), one.facts.get("via")) == (operation, "http")
    ]


def done(visited, *, command, reason=WHY):
    """Carry out what the dialog shows: plan and command first, nothing without a reason, then once."""
    dialog = visited.dialog
    expect(visited.at("plan")).to_be_visible()
    act = visited.at("dialog-act")
    if command:
        expect(dialog.locator(".command code")).to_contain_text(command)
    expect(act).to_be_disabled()
    dialog.get_by_label("Why").fill("   ")
    expect(act).to_be_disabled()
    dialog.get_by_label("Why").fill(reason)
    act.click(click_count=2)
    expect(visited.at("dialog-done")).to_be_visible()
    outcome = visited.at("dialog-done").inner_text()
    visited.at("dialog-close").click()
    expect(dialog).to_have_count(0)
    return outcome


def test_a_fork_is_planned_made_once_and_told(browser, served):
    with acting(browser, served) as visited:
        visited.go(f"/checkpoints/{step('kelp@7')}")
        visited.page.get_by_role("button", name="Fork", exact=True).click()
        visited.dialog.get_by_label("Name of the new run").fill("kelp-other-way")
        visited.dialog.get_by_text("Change the state on the way").click()
        visited.dialog.locator("[name=edits]").fill("{")
        expect(visited.dialog.locator(".field-error")).to_contain_text("no JSON")
        visited.dialog.locator("[name=edits]").fill(
            '[{"op": "add", "path": "/context/tone", "value": "dry"}]'
        )
        expect(visited.at("plan")).to_contain_text("kelp-other-way")
        outcome = done(visited, command="kelp@7 kelp-other-way")
    assert "kelp-other-way" in outcome
    assert served.desk.service.load_latest("kelp-other-way").context["tone"] == "dry"
    assert told(served, "fork") == [("ann", WHY)]


def test_a_fork_that_would_be_refused_says_why_before(browser, served):
    with acting(browser, served) as visited:
        visited.go(f"/checkpoints/{step('kelp@7')}")
        visited.page.get_by_role("button", name="Fork", exact=True).click()
        visited.dialog.get_by_label("Name of the new run").fill("orders-17")
        visited.dialog.get_by_label("Why").fill(WHY)
        expect(visited.dialog.locator(".listed.bad, .problem").first).to_be_visible()
        expect(visited.at("dialog-act")).to_be_disabled()


def test_a_recovery_is_planned_done_and_told(browser, served):
    with acting(browser, served) as visited:
        visited.go("/runs/support-chat")
        visited.page.get_by_role("button", name="Recover", exact=True).click()
        expect(visited.at("plan")).to_contain_text("Restores")
        expect(visited.at("plan")).to_contain_text("support-chat@12")
        outcome = done(visited, command="holdfast recover --no-resume support-chat")
    assert "support-chat@12" in outcome
    assert told(served, "recover") == [("ann", WHY)]


def test_a_recovery_of_what_somebody_works_on_has_to_take_it_over(browser, served):
    service = served.desk.service
    service.create_checkpoint("leased", {"n": 1})
    with holdfast.open(served.desk.kit.store.url, actor="worker", retain=False) as other:
        other.acquire_lease("leased", "worker-9", ttl_seconds=600)
        with acting(browser, served) as visited:
            visited.go(f"/checkpoints/{step('leased@1')}")
            visited.page.get_by_role("button", name="Recover from here").click()
            expect(visited.at("plan")).to_contain_text("worker-9")
            visited.dialog.get_by_label("Why").fill(WHY)
            expect(visited.dialog.locator(".stop")).to_contain_text("Allow first")
            expect(visited.at("dialog-act")).to_be_disabled()
            visited.dialog.get_by_text("Take it from").click()
            expect(visited.dialog.locator(".command code")).to_contain_text("--take-over")
            expect(visited.at("dialog-act")).to_be_enabled()


def test_what_the_server_refuses_is_shown_and_nothing_is_done(browser, served):
    service = served.desk.service
    service.create_checkpoint("taken", {"n": 1})
    with acting(browser, served) as visited:
        visited.go(f"/checkpoints/{step('taken@1')}")
        visited.page.get_by_role("button", name="Recover from here").click()
        expect(visited.at("plan")).to_be_visible()
        visited.dialog.get_by_label("Why").fill(WHY)
        expect(visited.at("dialog-act")).to_be_enabled()
        with holdfast.open(served.desk.kit.store.url, actor="worker", retain=False) as other:
            # After the plan, and before it is carried out.
            other.acquire_lease("taken", "worker-10", ttl_seconds=600)
            visited.at("dialog-act").click()
            problem = visited.dialog.locator(".problem")
            expect(problem).to_contain_text("worker-10")
            expect(problem).to_contain_text("lease_held")
    assert len(service.list_checkpoints("taken")) == 1


def test_a_replay_compares_and_changes_nothing(browser, served):
    before = len(served.desk.service.list_checkpoints("kelp"))
    with acting(browser, served) as visited:
        visited.go(f"/checkpoints/{step('kelp@9')}")
        visited.page.get_by_role("button", name="Replay up to here").click()
        expect(visited.at("plan")).to_contain_text("no side effect happens")
        outcome = done(visited, command="holdfast replay kelp")
    assert "no divergence" in outcome
    assert len(served.desk.service.list_checkpoints("kelp")) == before
    assert told(served, "replay") == [("ann", WHY)]


def test_a_prune_removes_what_the_plan_showed(browser, served):
    service = served.desk.service
    for number in range(8):
        service.create_checkpoint("prunable", {"n": number})
    with acting(browser, served) as visited:
        visited.go("/storage")
        visited.page.get_by_role("button", name="Preview a prune of prunable").click()
        visited.dialog.locator("[name=keep_last]").fill("3")
        visited.dialog.locator("[name=keep_days]").fill("0")
        expect(visited.at("dialog-act")).to_have_text("Remove 5 checkpoints")
        done(visited, command="holdfast prune --keep-last=3 --keep-days=0 prunable")
    assert len(service.list_checkpoints("prunable")) == 3
    assert told(served, "prune") == [("ann", WHY)]


def test_a_legal_hold_stands_against_a_prune_and_is_named(browser, served):
    service = served.desk.service
    for number in range(6):
        service.create_checkpoint("held", {"n": number})
    service.holds.place(workflow_id="held", reason="case 17")
    with acting(browser, served) as visited:
        visited.go("/storage")
        visited.page.get_by_role("button", name="Preview a prune of held").click()
        visited.dialog.locator("[name=keep_last]").fill("2")
        visited.dialog.locator("[name=keep_days]").fill("0")
        visited.dialog.get_by_label("Why").fill(WHY)
        expect(visited.at("plan")).to_contain_text("case 17")
        expect(visited.dialog.locator(".stop")).to_contain_text("A legal hold keeps everything.")
        expect(visited.at("dialog-act")).to_be_disabled()
    assert len(service.list_checkpoints("held")) == 6


def test_a_question_is_answered_and_told(browser, served):
    with acting(browser, served) as visited:
        visited.go("/runs/payment-4")
        visited.page.get_by_role("button", name="Answer").first.click()
        expect(visited.at("plan")).to_contain_text("Pay 70 to Ann?")
        visited.dialog.get_by_label("Why").fill(WHY)
        expect(visited.at("dialog-act")).to_be_disabled()
        visited.dialog.get_by_label("Why").fill("")
        visited.dialog.get_by_label("Yes, go on").check()
        done(visited, command="holdfast approve payment-4 pay")
    [asked] = [one for one in served.desk.service.requests.pending("payment-4") if one.kind == "approval"]
    assert asked.actor == "ann"
    assert told(served, "answerQuestion") == [("ann", WHY)]


def test_a_pin_is_set_and_taken_away(browser, served):
    with acting(browser, served) as visited:
        visited.go(f"/checkpoints/{step('kelp@3')}")
        visited.page.get_by_role("button", name="Pin", exact=True).click()
        done(visited, command="")
        expect(visited.at("chips").locator("[data-status=pinned]")).to_be_visible()
        visited.page.get_by_role("button", name="Unpin", exact=True).click()
        done(visited, command="", reason="no longer")
        expect(visited.at("chips").locator("[data-status=pinned]")).to_have_count(0)
    assert told(served, "changeCheckpoint") == [("ann", WHY), ("ann", "no longer")]


def test_labels_and_a_note_are_given_and_seen(browser, served):
    with acting(browser, served) as visited:
        visited.go(f"/checkpoints/{step('kelp@5')}")
        visited.page.get_by_role("button", name="Annotate", exact=True).click()
        visited.page.locator("[name=labels]").fill("release, checked, release")
        visited.page.locator("[name=note]").fill("Before the move.")
        done(visited, command="")
        expect(visited.at("chips")).to_contain_text("release")
        expect(visited.at("note")).to_contain_text("Before the move.")
        visited.page.get_by_role("button", name="Annotate", exact=True).click()
        expect(visited.page.locator("[name=labels]")).to_have_value("checked, release")
        expect(visited.at("dialog-act")).to_be_disabled()
    assert told(served, "changeCheckpoint")[-1] == ("ann", WHY)


def test_a_new_note_leaves_the_labels_as_they_are(browser, served):
    served.desk.service.annotate("kelp@6", labels=["release"])
    with acting(browser, served) as visited:
        # Labels that were given before commas were refused may have one.
        old = ["checked, twice", "release"]

        def older(route):
            if route.request.method != "GET":
                return route.fallback()
            answer = route.fetch()
            return route.fulfill(response=answer, json={**answer.json(), "labels": old})

        visited.page.route("**/v1/checkpoints/kelp%406", older)
        visited.go(f"/checkpoints/{step('kelp@6')}")
        visited.page.get_by_role("button", name="Annotate", exact=True).click()
        visited.page.locator("[name=note]").fill("Only this is new.")
        with visited.page.expect_request(lambda asked: asked.method == "PATCH") as sent:
            done(visited, command="")
        expect(visited.at("note")).to_contain_text("Only this is new.")
        # What is asked again meanwhile is answered before the page is closed.
        visited.page.unroute_all(behavior="wait")
        assert sent.value.post_data_json == {"note": "Only this is new.", "reason": WHY}


def test_a_checkpoint_is_validated(browser, served):
    with acting(browser, served) as visited:
        visited.go(f"/checkpoints/{step('kelp@4')}")
        visited.page.get_by_role("button", name="Validate", exact=True).click()
        outcome = done(visited, command="holdfast validate kelp@4")
    assert "as it was committed" in outcome
    assert told(served, "validateCheckpoint") == [("ann", WHY)]


def test_what_was_set_aside_is_checked_again_released_and_dropped(browser, served):
    service = served.desk.service
    for number in range(3):
        service.create_checkpoint("suspect", {"n": number})
    with acting(browser, served) as visited:
        visited.go(f"/checkpoints/{step('suspect@2')}")
        visited.page.get_by_role("button", name="Set aside").click()
        done(visited, command="")
        visited.go("/quarantine")
        visited.page.get_by_role("link", name="suspect@2").click()
        expect(visited.at("quarantined")).to_contain_text("suspect@1")
        for verb, command in (("Check again", "show"), ("Release", "release"), ("Drop", "drop")):
            visited.page.get_by_role("button", name=verb, exact=True).click()
            done(visited, command=f"holdfast quarantine {command}", reason=f"{verb} it")
    assert told(served, "setAside") == [("ann", WHY)]
    assert told(served, "releaseQuarantined") == [("ann", "Release it")]
    assert told(served, "dropQuarantined") == [("ann", "Drop it")]


def test_an_export_says_first_that_it_is_about_people(browser, served):
    with acting(browser, served) as visited:
        visited.go("/audit")
        visited.page.get_by_role("button", name="Export").click()
        expect(visited.dialog).to_contain_text("Personal data")
        visited.dialog.get_by_label("Why").fill(WHY)
        expect(visited.at("dialog-act")).to_be_disabled()
        visited.dialog.get_by_text("I know that").click()
        expect(visited.dialog.locator(".command code")).to_contain_text("holdfast audit export")
        visited.at("dialog-act").click()
        with visited.page.expect_download() as download:
            visited.at("export-download").click()
        assert download.value.suggested_filename == "holdfast-audit.zip"
        assert download.value.path().read_bytes()[:2] == b"PK"
    assert told(served, "exportAudit") == [("ann", WHY)]


def test_a_running_workflow_is_asked_to_pause(browser, served):
    service = served.desk.service
    service.create_checkpoint("busy", {"n": 1})
    with holdfast.open(served.desk.kit.store.url, actor="worker", retain=False) as other:
        other.acquire_lease("busy", "worker-11", ttl_seconds=600)
        with acting(browser, served) as visited:
            visited.go("/runs/busy")
            visited.page.get_by_role("button", name="Pause", exact=True).click()
            done(visited, command="holdfast pause busy")
    assert told(served, "makeRequest") == [("ann", WHY)]


@pytest.mark.parametrize(
    ("role", "route", "names"),
    [
        ("viewer", f"/checkpoints/{step('kelp@6')}", ["Pin", "Validate", "Fork", "Recover from here"]),
        ("viewer", "/", ["Resume orders-17"]),
        ("audit:read", "/audit", ["Export"]),
    ],
)
def test_whoever_may_only_look_sees_what_is_disabled_and_why(browser, served, role, route, names):
    token = served.desk.service.tokens.create("vera", ("read", role))[1]
    with acting(browser, served, token=token) as visited:
        visited.go(route)
        for name in names:
            button = visited.page.get_by_role("button", name=name, exact=True)
            expect(button).to_be_disabled()
            refused = visited.page.locator(".refused", has=button)
            expect(refused.locator(".why")).to_contain_text("Your token lacks the scope")


def test_what_a_token_lacks_is_said_once_for_a_row_of_buttons(browser, served):
    token = served.desk.service.tokens.create("vera", ("viewer",))[1]
    with acting(browser, served, token=token) as visited:
        visited.go(f"/checkpoints/{step('kelp@6')}")
        head = visited.page.locator("main .head .buttons > .why")
        expect(head).to_have_text("Your token lacks the scopes write and recover.")
        for said in visited.page.locator("main .head .refused .why").all():
            assert said.bounding_box()["width"] <= 1


def test_what_is_to_be_filled_in_is_said_once_somebody_tries_without(browser, served):
    with acting(browser, served) as visited:
        visited.go("/storage")
        visited.page.get_by_role("button", name="Preview a prune", exact=True).click()
        expect(visited.at("dialog-act")).to_be_disabled()
        expect(visited.dialog.locator(".stop")).to_have_count(0)
        visited.dialog.get_by_label("Why").fill(WHY)
        expect(visited.dialog.locator(".stop")).to_contain_text("Name a run.")
        expect(visited.at("dialog-act")).to_be_disabled()
        visited.dialog.get_by_label("Run", exact=True).fill("kelp")
        expect(visited.dialog.locator(".stop")).not_to_contain_text("Name a run.")


def test_many_missing_secrets_are_one_sentence(browser, served):
    keys = {f"service-{number:02}": {"password": f"Zq7Lw2Xe9Rt4-{number}"} for number in range(31)}
    served.desk.service.create_checkpoint("vault", keys)
    with acting(browser, served) as visited:
        visited.go(f"/checkpoints/{step('vault@1')}")
        visited.page.get_by_role("button", name="Recover from here").click()
        expect(visited.at("plan").locator(".sentences")).to_contain_text("31 secrets were never stored")
        expect(visited.dialog).not_to_contain_text("/context/service-07/password")


def test_whoever_may_not_read_the_trail_is_told_so(browser, served):
    token = served.desk.service.tokens.create("vera", ("viewer",))[1]
    with acting(browser, served, token=token) as visited:
        visited.go("/audit")
        expect(visited.page.locator("main")).to_contain_text("audit:read")
        expect(visited.page.locator("main tbody tr[data-row]")).to_have_count(0)


def test_a_dialog_of_whoever_may_not_act_shows_the_plan_and_no_more(browser, served):
    token = served.desk.service.tokens.create("vera", ("viewer",))[1]
    with acting(browser, served, token=token) as visited:
        visited.go("/storage")
        visited.page.get_by_role("button", name="Preview a prune of kelp", exact=True).click()
        expect(visited.at("plan")).to_be_visible()
        visited.dialog.get_by_label("Why").fill(WHY)
        expect(visited.at("dialog-act")).to_be_disabled()
        expect(visited.dialog.locator(".why")).to_contain_text("lacks the scope prune")
