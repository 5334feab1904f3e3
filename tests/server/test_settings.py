"""Where a server listens, and by which names it is known."""

from __future__ import annotations

import pytest

from holdfast.domain.errors import ConfigError
from holdfast.server.settings import Settings, parse_bind


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:8787", "127.0.0.1", 8787),
        ("localhost", "localhost", 8787),
        ("9000", "127.0.0.1", 9000),
        (":9000", "127.0.0.1", 9000),
        ("[::1]:0", "::1", 0),
        ("[::1]", "::1", 8787),
        ("::", "::", 8787),
        ("::1", "::1", 8787),
        ("0.0.0.0:80", "0.0.0.0", 80),
    ],
)
def test_an_address_is_taken_apart(text, host, port):
    assert parse_bind(text) == (host, port)


@pytest.mark.parametrize("text", ["a:b", "a:65536", "a:-1", "127.0.0.1:80 80"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ConfigError, match="nothing to listen on"):
        parse_bind(text)


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        *((host, True) for host in ("127.0.0.1", "127.8.0.1", "::1", "localhost")),
        *((host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "example.org")),
    ],
)
def test_only_this_machine_is_local(host, is_local):
    assert Settings(host).is_local is is_local


def test_a_public_server_is_not_known_by_local_names():
    settings = Settings("10.0.0.1", hosts=frozenset({"ops.example"}))
    assert settings.allowed_hosts == {"10.0.0.1", "ops.example"}


def test_an_address_is_written_as_browsers_take_it():
    assert Settings("::1", 1).url == "http://[::1]:1"
    assert Settings("a", 2, tls_cert="c", tls_key="k").url == "https://a:2"
