from __future__ import annotations

import pytest

from holdfast import __version__
from holdfast.server.settings import Settings
from tests.server.reads import refused
from tests.server.served import application


def test_a_token_is_told_what_it_may(served):
    call, desk = served
    told = call.get("/v1/session")
    assert (told["name"], told["csrf"], told["version"]) == ("ann", "", __version__)
    assert told["store"] == desk.kit.store.url and "recover" in told["scopes"]


def test_a_browser_signs_in_and_out(served):
    call, desk = served
    client = call.client
    signed = client.post("/v1/session", json={"token": desk.doorkeeper.key})
    assert signed.status_code == 201
    cookie = signed.headers["set-cookie"]
    assert cookie.startswith("holdfast_session") and "HttpOnly" in cookie and "SameSite=Strict" in cookie
    told = client.get("/v1/session").json()
    assert told == signed.json() and told["csrf"]
    gone = client.delete("/v1/session", headers={"x-holdfast-csrf": told["csrf"]})
    assert gone.status_code == 204 and "Max-Age=0" in gone.headers["set-cookie"]
    assert client.get("/v1/session").status_code == 401


@pytest.mark.parametrize(
    ("more", "is_secure"),
    [({}, False), ({"is_proxied": True}, True), ({"tls_cert": "c.pem", "tls_key": "k.pem"}, True)],
)
def test_a_cookie_never_leaves_tls_where_browsers_ask_through_it(url, more, is_secure):
    with application(url, Settings(rate=100_000, **more)) as (client, desk):
        signed = client.post("/v1/session", json={"token": desk.doorkeeper.key})
        assert signed.headers["set-cookie"].endswith("; Secure") is is_secure
        sent = {"cookie": signed.headers["set-cookie"].partition(";")[0]}
        csrf = {"x-holdfast-csrf": signed.json()["csrf"]}
        gone = client.delete("/v1/session", headers={**sent, **csrf})
        assert gone.status_code == 204 and ("; Secure" in gone.headers["set-cookie"]) is is_secure


def test_a_token_that_is_not_known_signs_nobody_in(served):
    call, _ = served
    refused(call.client.post("/v1/session", json={"token": "nothing"}), 401, "unauthenticated")
