"""One checkpoint: what it is in words, and its state as a tree that is loaded as it is opened."""

from __future__ import annotations

import re

from playwright.sync_api import expect

import holdfast
from tests.browser.browsing import step, visit

CLIPBOARD = {"permissions": ["clipboard-read", "clipboard-write"]}
COPIED = "() => navigator.clipboard.readText()"


def tree_of(visited, checkpoint):
    """Go to a checkpoint, and answer its state."""
    visited.go(f"/checkpoints/{step(checkpoint)}")
    tree = visited.at("state-tree")
    expect(tree.get_by_role("treeitem").first).to_be_visible()
    return tree


def item(tree, pointer):
    """Answer the place of a state that a JSON Pointer names."""
    return tree.locator(f"[data-pointer='{pointer}']")


def walked(visited, tree, pointer):
    """Go down from the first place to another one by keys."""
    tree.get_by_role("treeitem").first.focus()
    for _ in range(tree.get_by_role("treeitem").count()):
        if tree.locator(":focus").get_attribute("data-pointer") == pointer:
            break
        visited.press("ArrowDown")
    expect(item(tree, pointer)).to_be_focused()


def test_a_sentence_says_what_it_is_and_facts_say_where_it_comes_from(looking):
    tree_of(looking, "support-chat@6")
    expect(looking.page.locator("main .note")).to_contain_text("by assistant at chat")
    expect(looking.page.locator("main .note")).to_contain_text(re.compile(r"of state, its record takes \d"))
    about = looking.page.locator("main .card", has_text="About it")
    for text in ("support-chat@6", "support-chat@5", "Checksum", "Schema", "UUID"):
        expect(about).to_contain_text(text)
    expect(looking.at("chips").locator("[data-status]").first).to_be_visible()


def test_a_badge_says_whether_a_signed_head_covers_it(looking):
    tree_of(looking, "support-chat@6")
    badge = looking.at("signature")
    expect(badge).to_have_attribute("data-signature", "signed")
    expect(badge).to_have_text("signed")
    about = looking.page.locator("main .card", has_text="About it")
    expect(about).to_contain_text(f"Holdfast {holdfast.__version__}")
    expect(about).to_contain_text("the key of this server")
    badge.click()
    expect(looking.page.locator("main h1")).to_contain_text("Entry")


def test_a_new_checkpoint_waits_for_a_head_until_one_is_signed(browser, small):
    service = small.desk.service
    service.create_checkpoint("fresh", {"n": 1}, agent_id="writer", agent_version="7.2")
    with visit(browser, small) as visited:
        tree_of(visited, "fresh@1")
        expect(visited.at("signature")).to_have_attribute("data-signature", "waiting")
        expect(visited.page.locator("main .card", has_text="About it")).to_contain_text("7.2")
        service.audit.keeper.anchor()
        expect(visited.at("signature")).to_have_attribute("data-signature", "signed")


def test_the_state_is_a_tree_that_the_keyboard_walks(looking):
    tree = tree_of(looking, "support-chat@6")
    expect(tree).to_have_attribute("role", "tree")
    context = item(tree, "/context")
    expect(context).to_have_attribute("aria-expanded", "false")
    walked(looking, tree, "/context")
    looking.press("ArrowRight")
    expect(context).to_have_attribute("aria-expanded", "true")
    child = item(tree, "/context/topic")
    expect(child).to_have_attribute("aria-level", "2")
    expect(child).to_contain_text("tides")
    looking.press("ArrowRight")
    focused = tree.locator(":focus")
    expect(focused).to_have_attribute("aria-level", "2")
    looking.press("ArrowLeft")
    expect(context).to_be_focused()
    looking.press("ArrowLeft")
    expect(child).to_have_count(0)
    looking.press("End", "Home")
    expect(tree.get_by_role("treeitem").first).to_be_focused()


def test_a_place_is_loaded_when_it_is_opened_and_not_before(browser, small):
    with visit(browser, small) as visited:
        asked: list[str] = []
        visited.page.on(
            "request", lambda request: asked.append(request.url) if "/state?" in request.url else None
        )
        tree = tree_of(visited, "support-chat@6")
        assert not any("path=%2F" in url for url in asked)
        item(tree, "/messages").click()
        expect(item(tree, "/messages/0")).to_be_visible()
        assert [url for url in asked if "path=%2Fmessages&" in url + "&"]
        visited.check()


def test_an_address_names_a_place_in_the_state(looking):
    looking.go(f"/checkpoints/{step('support-chat@6')}?at=/messages/2/content")
    place = item(looking.at("state-tree"), "/messages/2/content")
    expect(place).to_be_visible()
    expect(looking.page.locator(".chosen-head code")).to_have_text("/messages/2/content")


def test_bytes_are_shown_in_hex_and_base64(looking):
    tree = tree_of(looking, "support-chat@6")
    item(tree, "/context").click()
    item(tree, "/context/image").click()
    chosen = looking.page.locator(".chosen")
    if looking.at("load-value").count():
        looking.at("load-value").click()
    expect(chosen.locator("pre").first).to_contain_text("89 50 4e 47 00 01 02")
    expect(chosen).to_contain_text("iVBORwABAg")


def test_a_big_value_is_folded_until_somebody_asks_for_it(browser, large):
    with visit(browser, large) as visited:
        tree = tree_of(visited, "big-value@1")
        item(tree, "/context").click()
        item(tree, "/context/text").click()
        chosen = visited.page.locator(".chosen")
        expect(chosen).to_contain_text("This is large, and not loaded.")
        assert len(tree.inner_text()) < 5_000
        visited.at("load-value").click()
        expect(chosen.get_by_role("button", name=re.compile("Show 300,000 characters"))).to_be_visible()
        assert len(chosen.inner_text()) < 10_000
        visited.check()


def test_a_long_list_comes_in_portions(browser, large):
    with visit(browser, large) as visited:
        tree = tree_of(visited, "big-value@2")
        item(tree, "/context").click()
        item(tree, "/context/list").click()
        more = tree.get_by_text("Show more, after 100")
        expect(more).to_be_visible()
        expect(item(tree, "/context/list/100")).to_have_count(0)
        more.click()
        expect(item(tree, "/context/list/100")).to_have_count(1)
        visited.check()


def test_pointer_and_value_are_copied_by_key(browser, small):
    with visit(browser, small, **CLIPBOARD) as visited:
        tree = tree_of(visited, "support-chat@6")
        walked(visited, tree, "/context")
        visited.press("ArrowRight")
        expect(item(tree, "/context/topic")).to_be_visible()
        item(tree, "/context/topic").click()
        visited.press("y")
        expect(visited.page.locator(".toasts")).to_contain_text("Copied the pointer")
        assert visited.page.evaluate(COPIED) == "/context/topic"
        visited.press("c")
        expect(visited.page.locator(".toasts")).to_contain_text("Copied the value")
        assert visited.page.evaluate(COPIED) == "tides"
        visited.page.locator(".command .copy").last.click()
        assert visited.page.evaluate(COPIED).startswith("holdfast show")
        visited.check()


def test_secrets_are_masked_in_what_is_shown(browser, small):
    secret = "sk-ant-api03-" + "Zq7Lw2Xe9Rt4Yu1Io6Pa3Sd8Fg5Hj0Kl" * 2
    small.desk.service.create_checkpoint("keyring", {"note": f"the key is {secret}"})
    with visit(browser, small) as visited:
        tree = tree_of(visited, "keyring@1")
        item(tree, "/context").click()
        expect(item(tree, "/context/note")).to_contain_text("the key is")
        assert secret not in visited.page.content()
        visited.check()


def test_nothing_is_recovered_from_what_is_in_quarantine_and_the_run_is_offered(looking):
    looking.go(f"/checkpoints/{step('ledger@2')}")
    here = looking.page.get_by_role("button", name="Recover from here")
    expect(here).to_be_disabled()
    expect(looking.page.locator(".refused", has=here).locator(".why")).to_have_text("It is in quarantine.")
    assert looking.page.locator("main .head .button.primary").all_inner_texts() == ["Recover the run"]
    looking.page.get_by_role("button", name="Recover the run").click()
    expect(looking.dialog.get_by_label("From")).to_have_value("latest")
    expect(looking.at("plan")).to_contain_text("ledger@3")


def test_a_page_of_what_is_in_quarantine_says_why_and_leads_there(looking):
    looking.go(f"/checkpoints/{step('ledger@2')}")
    fork = looking.page.get_by_role("button", name="Fork", exact=True)
    expect(fork).to_be_disabled()
    expect(looking.page.locator(".refused", has=fork).locator(".why")).to_have_text("It is in quarantine.")
    aside = looking.at("aside")
    expect(aside).to_contain_text("It is in quarantine: the checksum does not fit")
    aside.get_by_role("link").click()
    expect(looking.heading).to_have_text("Quarantine")
    expect(looking.at("quarantined")).to_contain_text("the checksum does not fit")


def test_a_sound_checkpoint_can_be_recovered_from(looking):
    looking.go(f"/checkpoints/{step('ledger@1')}")
    assert looking.page.locator("main .head .button.primary").all_inner_texts() == ["Recover from here"]
    expect(looking.page.get_by_role("button", name="Recover from here")).to_be_enabled()
