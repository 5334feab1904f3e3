from __future__ import annotations

import pytest

from holdfast.server.api.reports import chosen
from holdfast.server.problems import Refusal
from tests.server.reads import filled, refused
from tests.server.served import application, caller_for

OFFERED = ("application/json", "text/markdown", "text/html")


def test_a_report_comes_in_the_form_that_is_asked_for(tmp_path):
    with application(filled(f"file:{tmp_path}/store")) as (client, desk):
        call = caller_for(client, desk, "viewer")
        path = "/v1/runs/failed/report"
        assert call.get(path)["status"] == "failed"
        text = call("GET", path, headers={"Accept": "text/markdown"})
        assert text.headers["content-type"] == "text/markdown; charset=utf-8" and "no ink" in text.text
        page = call("GET", path, headers={"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"})
        assert page.headers["content-type"] == "text/html; charset=utf-8" and "<html" in page.text
        assert "sandbox" in page.headers["content-security-policy"]
        refused(call("GET", path, headers={"Accept": "image/png"}), 406, "not_acceptable")
        refused(caller_for(client, desk, "read")("GET", path), 403, "scope_missing")


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/*", "text/markdown"),
        ("application/json;q=0.5, text/html", "text/html"),
        ("text/html;q=0.1, text/markdown;q=0.2", "text/markdown"),
        ("image/png, */*;q=0.1", "application/json"),
        ("TEXT/HTML; charset=utf-8", "text/html"),
    ],
)
def test_the_form_that_is_wanted_most_is_chosen(accept, form):
    assert chosen(accept, OFFERED) == form


@pytest.mark.parametrize("accept", ["image/png", "text/html;q=0", "text/html;q=x", ","])
def test_where_nothing_fits_it_is_refused(accept):
    with pytest.raises(Refusal):
        chosen(accept, OFFERED)
