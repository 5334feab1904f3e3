"""The trail: verified by the server and in the browser, which believes nothing but bytes; and proofs."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import expect

import holdfast
from tests.browser.browsing import visit
from tests.server.served import running

SESSION = "s-1"


@pytest.fixture
def url(tmp_path):
    """A store whose trail has a signed head, and one entry after it."""
    url = f"file:{tmp_path}/store"
    with holdfast.open(url, actor="ann", session=SESSION, signing_key=str(tmp_path / "keys")) as service:
        for number in range(8):
            service.create_checkpoint("WF-1", {"n": number})
        service.record_decision("WF-1", "go on", rationale="why not", confidence=0.5)
        service.audit.keeper.anchor(create_key=True)
        service.create_checkpoint("WF-1", {"n": "after the head"})
        service.audit.keeper.update()
    return url


@contextmanager
def auditing(browser, url, tmp_path):
    """Somebody at the page of the trail."""
    with (
        running(url, signing_key=str(tmp_path / "keys"), actor="ann") as served,
        visit(browser, served, accept_downloads=True) as visited,
    ):
        visited.go("/audit")
        yield visited
        # What the browser itself says of refusals is no fault of the page.
        visited.errors[:] = [error for error in visited.errors if "status of 4" not in error]
        visited.check()


def lines_of(tmp_path):
    """Answer the file on the disk that the entries of the session are in."""
    [folder] = Path(tmp_path, "store", "audit").glob(f"*/{SESSION}")
    return folder / "audit_trail.jsonl"


def verified(visited, by):
    """Verify, by the server or in the browser; answer what is said."""
    visited.at(f"verify-{by}").click()
    verdict = visited.page.locator(f"[data-testid=verdict][data-by={by}]")
    expect(verdict).to_be_visible()
    return verdict


def first_bad(verdict):
    """Answer the entry that is named as the first bad one."""
    link = verdict.get_by_test_id("first-bad").get_by_role("link")
    expect(link).to_be_visible()
    return link.inner_text()


@pytest.mark.parametrize("by", ["server", "browser"])
def test_a_whole_trail_is_right_and_the_coverage_is_told(browser, url, tmp_path, by):
    with auditing(browser, url, tmp_path) as visited:
        verdict = verified(visited, by)
        expect(verdict).to_have_attribute("data-verdict", "ok")
        coverage = visited.at("coverage").inner_text()
        said = re.search(r"Entries 1\.\.(\d+) checked, (\d+) not anchored", coverage)
        assert said is not None, coverage
        assert int(said[1]) > int(said[2]) > 0
        states = visited.page.locator("main tbody tr[data-row] td:first-child [data-status]")
        assert {"verified", "unanchored"} <= {states.nth(at).inner_text() for at in range(states.count())}


def test_a_changed_entry_is_found_by_both_and_named_the_same(browser, url, tmp_path):
    trail = lines_of(tmp_path)
    trail.write_bytes(trail.read_bytes().replace(b'"CHECKPOINT_CREATED"', b'"CHECKPOINT_CREATEE"', 1))
    with auditing(browser, url, tmp_path) as visited:
        named = {}
        for by in ("server", "browser"):
            verdict = verified(visited, by)
            expect(verdict).to_have_attribute("data-verdict", "failed")
            named[by] = first_bad(verdict)
        assert named["server"] == named["browser"]
        expect(visited.page.locator("main tbody tr.check-broken")).not_to_have_count(0)
        visited.page.get_by_test_id("first-bad").get_by_role("link").click()
        expect(visited.page.locator("main .problem")).to_be_visible()
        expect(visited.page.locator("main .card-head [data-status=broken]")).to_be_visible()


def test_two_entries_that_changed_places_are_found(browser, url, tmp_path):
    trail = lines_of(tmp_path)
    lines = trail.read_bytes().splitlines(keepends=True)
    lines[3], lines[4] = lines[4], lines[3]
    trail.write_bytes(b"".join(lines))
    with auditing(browser, url, tmp_path) as visited:
        verdict = verified(visited, "browser")
        expect(verdict).to_have_attribute("data-verdict", "failed")
        in_browser = first_bad(verdict)
        assert first_bad(verified(visited, "server")) == in_browser


def test_a_tail_that_was_cut_off_below_the_signed_head_is_found(browser, url, tmp_path):
    trail = lines_of(tmp_path)
    trail.write_bytes(b"".join(trail.read_bytes().splitlines(keepends=True)[:4]))
    with auditing(browser, url, tmp_path) as visited:
        expect(verified(visited, "browser")).to_have_attribute("data-verdict", "failed")
        expect(verified(visited, "server")).to_have_attribute("data-verdict", "failed")


def forged(head):
    """Write another root into the signed head; the signature stays that of the right one."""
    lines = head["note"].split("\n")
    root = base64.b64decode(lines[2])
    lines[2] = base64.b64encode(bytes([root[0] ^ 1]) + root[1:]).decode()
    return {**head, "note": "\n".join(lines)}


def resigned(head):
    """Change the signature of the head."""
    before, _, signature = head["note"].rpartition(" ")
    raw = bytearray(base64.b64decode(signature.strip()))
    raw[-1] ^= 1
    return {**head, "note": f"{before} {base64.b64encode(raw).decode()}\n"}


@pytest.mark.parametrize("forge", [forged, resigned])
def test_a_forged_head_is_found_in_the_browser(browser, url, tmp_path, forge):
    with auditing(browser, url, tmp_path) as visited:
        lie(visited, "**/v1/audit/head*", forge)
        verdict = verified(visited, "browser")
        expect(verdict).to_have_attribute("data-verdict", "failed")
        expect(verdict).to_contain_text("signature wrong")


def lie(visited, pattern, change):
    """Let a server that cannot be trusted answer."""

    def answer(route):
        response = route.fetch()
        route.fulfill(response=response, json=change(response.json()))

    visited.page.context.route(pattern, answer)


def test_a_log_that_was_put_back_to_an_older_state_is_found(browser, url, tmp_path):
    """Everything in it is right and signed; only whoever looked before can know that there was more."""
    older = shutil.copytree(tmp_path / "store", tmp_path / "older")
    settings = {"signing_key": str(tmp_path / "keys"), "actor": "ann"}
    with ExitStack() as first:
        served = first.enter_context(running(url, **settings))
        with visit(browser, served) as visited:
            for number in range(5):
                served.desk.service.create_checkpoint("WF-2", {"n": number})
            served.desk.service.flush()
            visited.go("/audit")
            expect(verified(visited, "browser")).to_have_attribute("data-verdict", "ok")
            visited.page.get_by_text("What this browser believes").click()
            expect(visited.page.locator(".trust")).to_contain_text("This browser remembers the head of")
            first.close()
            shutil.rmtree(tmp_path / "store")
            older.rename(tmp_path / "store")
            with running(url, port=served.desk.settings.port, **settings) as back:
                visited.page.goto("about:blank")
                visited.page.goto(back.page)
                visited.settle()
                visited.go("/audit")
                verdict = verified(visited, "browser")
                expect(verdict).to_have_attribute("data-verdict", "failed")
                expect(verdict).to_contain_text("that this browser remembers")


def steps_of(visited, index):
    """Go to an entry, and answer how the steps of its proof came out."""
    visited.go(f"/audit/{index}")
    steps = visited.at("proof-steps").locator("li")
    expect(steps).to_have_count(3)
    return [steps.nth(at).get_attribute("data-state") for at in range(3)]


def test_a_proof_is_checked_in_the_page(browser, url, tmp_path):
    with auditing(browser, url, tmp_path) as visited:
        assert steps_of(visited, 3) == ["ok", "ok", "ok"]
        lie(visited, "**/v1/audit/entries/4/proof", changed_hash)
        assert steps_of(visited, 4) == ["ok", "broken", "ok"]
        expect(visited.at("proof-steps").locator("[data-state=broken]")).to_contain_text("wrong")


def changed_hash(proof):
    """Change one bit of one hash of a proof."""
    first = bytearray(base64.b64decode(proof["hashes"][0]))
    first[0] ^= 1
    return {**proof, "hashes": [base64.b64encode(first).decode(), *proof["hashes"][1:]]}


def test_a_downloaded_proof_is_verified_without_the_server(browser, url, tmp_path):
    with auditing(browser, url, tmp_path) as visited:
        visited.go("/audit/3")
        with visited.page.expect_download() as download:
            visited.page.get_by_role("button", name=".tlog-proof").click()
        file = tmp_path / download.value.suggested_filename
        download.value.save_as(file)
        head = visited.page.evaluate("() => fetch('/v1/audit/head').then((answer) => answer.json())")
    assert file.name == "entry-3.tlog-proof"
    command = [
        sys.executable,
        "-m",
        "holdfast",
        "audit",
        "verify",
        str(file),
        "--key",
        head["keys"][0],
        "--json",
    ]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert json.loads(checked.stdout)


def test_the_trail_is_filtered_by_what_the_address_says(browser, url, tmp_path):
    with auditing(browser, url, tmp_path) as visited:
        visited.page.get_by_label("Type").fill("AGENT_DECISION")
        visited.press("Enter")
        rows = visited.page.locator("main tbody tr[data-row]")
        expect(rows).to_have_count(1)
        assert "type=AGENT_DECISION" in visited.route
        visited.page.reload()
        visited.settle()
        expect(rows).to_have_count(1)
        rows.first.get_by_role("link").first.click()
        expect(visited.page.locator("main")).to_contain_text("why not")
        visited.page.get_by_role("tab", name="Raw").click()
        expect(visited.page.locator("pre.raw").first).to_contain_text('"hash"')
