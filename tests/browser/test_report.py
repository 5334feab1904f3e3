"""How a run went, for people."""

from __future__ import annotations

import subprocess
import sys

from playwright.sync_api import expect

from tests.browser.browsing import visit

COPIED = "() => navigator.clipboard.readText()"


def test_the_report_is_the_same_as_that_of_the_command_line(browser, small):
    with visit(browser, small, permissions=["clipboard-read", "clipboard-write"]) as visited:
        visited.go("/runs/orders-17?tab=report")
        report = visited.at("report")
        expect(report).to_contain_text("the carrier does not answer")
        visited.page.get_by_role("button", name="Copy the report as Markdown").click()
        copied = visited.page.evaluate(COPIED)
        visited.check()
    command = [sys.executable, "-m", "holdfast", "report", "orders-17", "--store", small.desk.kit.store.url]
    printed = subprocess.run([*command, "--format", "md"], capture_output=True, text=True, check=True).stdout
    assert heads(copied) == heads(printed) != []


def heads(text):
    """Answer the headings of a report."""
    return [line for line in text.splitlines() if line.startswith("#")]


def test_there_is_a_report_for_browsers_without_scripts(browser, small):
    token = small.desk.service.tokens.create("bob", ("viewer",))[1]
    headers = {"Authorization": f"Bearer {token}", "Accept": "text/html"}
    with browser.new_context(java_script_enabled=False, extra_http_headers=headers) as context:
        page = context.new_page()
        page.goto(f"{small.url}/v1/runs/orders-17/report")
        expect(page.locator("body")).to_contain_text("the carrier does not answer")
        page.goto(f"{small.url}/ui/")
        assert "<noscript>" in page.content() and "holdfast report RUN" in page.content()
