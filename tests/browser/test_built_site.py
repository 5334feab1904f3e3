"""What looks at the documentation site in a browser goes red on a site that is not as it should be."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser

from tests.built_site import LOOKED_AT, seen_in

ASKS_ELSEWHERE = "<script>fetch('http://elsewhere.example/told')</script>"
FAILS = "<script>nothing.at.all()</script>"
LIGHT = "<style>body { background: #fff }</style>"


def test_a_site_that_asks_elsewhere_is_always_light_fails_and_finds_nothing_is_told_so(
    browser: Browser, tmp_path: Path
) -> None:
    for name in (*LOOKED_AT, "runbook"):
        path = tmp_path / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"<!doctype html>{LIGHT}<p>{name}</p>")
    (tmp_path / "tutorial.html").write_text(f"<!doctype html>{LIGHT}{ASKS_ELSEWHERE}")
    (tmp_path / "architecture.html").write_text(f"<!doctype html>{LIGHT}{FAILS}")
    (tmp_path / "runbook.html").write_text("<!doctype html>" + "<p>on and on</p>" * 200)
    said = seen_in(browser, tmp_path, patience_ms=1_000)
    assert "a page asks for http://elsewhere.example/told" in said
    assert any(line.startswith("a script fails: ") for line in said)
    assert any(line.startswith("index is not dark: ") for line in said)
    assert any(line.startswith("the runbook prints on ") for line in said)
    assert "search does not find the page on witnesses" in said
