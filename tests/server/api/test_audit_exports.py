"""Exports of the trail over HTTP: made, fetched, and verified elsewhere."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile

import pytest

from tests.server.audits import signed
from tests.server.served import application, caller_for


@pytest.fixture(params=["file", "sqlite"])
def url(request, tmp_path):
    return signed(f"{request.param}:{tmp_path}/store", tmp_path)


@pytest.fixture
def call(url, tmp_path):
    with application(url, signing_key=str(tmp_path / "keys")) as (client, desk):
        yield caller_for(client, desk, "auditor")


def test_an_export_is_made_fetched_and_verified_without_a_store(call, tmp_path):
    begun = call("POST", "/v1/audit/export", json={"reason": "yearly audit", "payloads": True})
    assert begun.status_code == 202
    place = begun.headers["location"]
    while (operation := call.get(place))["status"] in ("waiting", "running"):
        pass
    assert operation["status"] == "done", operation
    fetched = call("GET", operation["result"]["download"])
    assert fetched.headers["content-type"] == "application/zip"
    zipfile.ZipFile(io.BytesIO(fetched.content)).extractall(tmp_path / "out")
    folder = str(tmp_path / "out" / "holdfast-export")
    verified = subprocess.run(
        [sys.executable, "-m", "holdfast", "audit", "verify", folder, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(verified.stdout)["fault_count"] == 0, verified.stderr
    assert call("GET", "/v1/audit/exports/00000000").status_code == 404
    assert call("GET", "/v1/audit/exports/..%2F..%2Fetc").status_code == 404


def test_who_may_only_read_the_trail_may_not_export_it(url):
    with application(url) as (client, desk):
        reader = caller_for(client, desk, "audit:read")
        assert reader("POST", "/v1/audit/export", json={"reason": "r"}).status_code == 403
