"""What is masked in a state: shown as such, and revealed to whoever may and says why."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import holdfast
from holdfast.bootstrap_secrets import known_secrets
from tests.browser.browsing import step, visit
from tests.browser.test_accessibility import findings
from tests.encrypted import OLD_KEY
from tests.server.served import running

WHY = "the test has to see it"
SECRET = "correct horse <b>battery</b>"


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    """A server of an encrypted store that knows one of two secrets, and has the key of a person's value."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TEST_KEY", OLD_KEY.hex())
        patched.setenv("APP_PASSWORD", SECRET)
        url, key = f"sqlite:{tmp_path_factory.mktemp('masked')}/store", "env:TEST_KEY"
        with holdfast.open(url, encrypt=True, encryption_key=key) as service:
            person = holdfast.Personal("alice", "alice@example.org")
            service.create_checkpoint("wf", {"password": SECRET, "token": "t-1", "who": person, "n": 1})
        with running(url, encryption_key=key, actor="ann") as served:
            served.desk.resolver_of = known_secrets("env:APP_PASSWORD")
            yield served


def chosen(visited, pointer):
    """Choose a place of the state."""
    visited.go(f"/checkpoints/{step('wf@1')}?at={step(pointer)}")
    visited.page.locator(f'[role=treeitem][data-pointer="{pointer}"]').click()


def told(served, type):
    served.desk.service.flush()
    return [one for one in served.desk.service.audit.query_events() if one.type == type]


def test_a_secret_is_revealed_with_a_reason_and_told(browser, masked):
    with visit(browser, masked) as visited:
        chosen(visited, "/context/password")
        row = visited.page.locator('[role=treeitem][data-pointer="/context/password"]')
        expect(row).to_contain_text("masked")
        visited.at("reveal").click()
        expect(visited.at("plan")).to_contain_text("/context/password")
        command = visited.dialog.locator(".command code")
        expect(command).to_contain_text("holdfast reveal --reason=")
        expect(command).to_contain_text("wf@1 /context/password")
        expect(visited.at("dialog-act")).to_be_disabled()
        visited.dialog.get_by_label("Why").fill("the first time")
        visited.at("dialog-act").click()
        expect(visited.at("revealed")).to_have_text(SECRET)
        [wish] = [one for one in told(masked, "REQUEST_MADE") if one.data == {"reason": "the first time"}]
        [entry] = [
            one for one in told(masked, "SECRET_REVEALED") if one.correlation_id == wish.correlation_id
        ]
        assert (wish.actor, wish.facts["operation"], entry.actor) == ("ann", "revealState", "ann")
        assert entry.data == {"pointer": "/context/password"}
        visited.at("dialog-close").click()
        expect(visited.dialog).to_have_count(0)
        assert "battery" not in visited.page.content()
        visited.check()


def test_a_value_of_a_person_is_sealed_until_it_is_revealed(browser, masked):
    with visit(browser, masked) as visited:
        chosen(visited, "/context/who")
        expect(visited.page.locator('[data-pointer="/context/who"]')).to_contain_text("under a person's seal")
        visited.at("reveal").click()
        visited.dialog.get_by_label("Why").fill(WHY)
        visited.at("dialog-act").click()
        expect(visited.at("revealed")).to_have_text("alice@example.org")
        visited.check()


def test_what_nobody_knows_stays_masked_and_is_named(browser, masked):
    with visit(browser, masked) as visited:
        chosen(visited, "/context/token")
        visited.at("reveal").click()
        visited.dialog.get_by_label("Why").fill(WHY)
        visited.at("dialog-act").click()
        expect(visited.at("revealed")).to_contain_text("[REDACTED:")
        expect(visited.at("dialog-done")).to_contain_text("Still masked")
        expect(visited.at("dialog-done")).to_contain_text("/context/token")
        visited.check()


def test_a_server_without_a_resolver_says_so_before_anything_is_asked(browser, masked):
    known, masked.desk.resolver_of = masked.desk.resolver_of, None
    try:
        with visit(browser, masked) as visited:
            chosen(visited, "/context/password")
            visited.at("reveal").click()
            expect(visited.at("plan")).to_contain_text("--resolver")
            visited.dialog.get_by_label("Why").fill(WHY)
            expect(visited.at("dialog-act")).to_be_disabled()
            visited.check()
    finally:
        masked.desk.resolver_of = known


def test_whoever_lacks_the_scope_sees_why(browser, masked):
    token = masked.desk.service.tokens.create("vera", ("viewer",))[1]
    with visit(browser, masked, token=token) as visited:
        chosen(visited, "/context/password")
        expect(visited.at("reveal")).to_be_disabled()
        expect(visited.page.locator(".chosen .why")).to_contain_text("state:reveal")
        visited.check()


def test_what_is_not_masked_has_nothing_to_reveal(browser, masked):
    with visit(browser, masked) as visited:
        chosen(visited, "/context/n")
        expect(visited.page.locator(".chosen")).to_contain_text("/context/n")
        expect(visited.at("reveal")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_masks_and_what_reveals_them_have_no_serious_finding(browser, masked, scheme):
    with visit(browser, masked, color_scheme=scheme, reduced_motion="reduce") as visited:
        chosen(visited, "/context/password")
        assert findings(visited.page, scheme) == []
        visited.at("reveal").click()
        expect(visited.at("plan")).to_be_visible()
        assert findings(visited.page, scheme) == []
        visited.dialog.get_by_label("Why").fill(WHY)
        visited.at("dialog-act").click()
        expect(visited.at("revealed")).to_be_visible()
        assert findings(visited.page, scheme) == []
        visited.check()
