"""A server that listens, and ends when it is told to."""

from __future__ import annotations

import urllib.request

import pytest

import holdfast
from holdfast.domain.errors import ConfigError
from holdfast.server.serving import listen, server
from holdfast.server.settings import Settings
from tests.server.served import desk_of, running


def test_it_answers_over_a_real_socket_until_it_is_ended(tmp_path):
    url = f"file:{tmp_path}/store"
    with holdfast.open(url):
        pass
    with running(url) as served, urllib.request.urlopen(f"{served.url}/healthz", timeout=30) as answer:
        assert answer.status == 200 and answer.headers["server"] is None
    with pytest.raises(OSError):
        urllib.request.urlopen(f"{served.url}/healthz", timeout=30)


def test_an_address_that_is_taken_is_told():
    with listen(Settings(port=0)) as taken:
        taken.listen()
        with pytest.raises(ConfigError, match="cannot listen there"):
            listen(Settings(port=taken.getsockname()[1]))


def test_an_address_of_another_machine_is_told():
    with pytest.raises(ConfigError, match="cannot listen there"):
        listen(Settings("192.0.2.1", 0))


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_a_certificate_that_is_none_is_told_by_its_name(tmp_path, text):
    url, file = f"file:{tmp_path}/store", tmp_path / "cert.pem"
    with holdfast.open(url):
        pass
    if text is not None:
        file.write_text(text)
    settings = Settings(tls_cert=str(file), tls_key=str(file))
    with desk_of(url, settings) as desk, pytest.raises(ConfigError) as refused:
        server(desk, lambda: None)
    assert refused.value.place == str(file)
