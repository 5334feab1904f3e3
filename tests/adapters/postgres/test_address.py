"""URLs are taken apart, and nothing secret comes out again."""

from __future__ import annotations

import pytest

from holdfast.adapters.postgres.address import Address, read_address
from holdfast.domain.errors import ConfigError

SECRET = "s3cr3t"


def test_a_url_is_shown_without_user_and_password():
    address = read_address(f"postgresql://ann:{SECRET}@db.example:5433/work?sslmode=require")
    assert address.url == "postgresql://db.example:5433/work"
    assert address.parameters["password"] == SECRET
    assert address.parameters["sslmode"] == "require"
    assert SECRET not in repr(address) and SECRET not in str(address)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql:///work?host=/run/pg", "postgresql:///work?host=/run/pg"),
        ("postgresql://a,b:1/work", "postgresql://a,b:,1/work"),
        ("postgresql://h/work?schema=team", "postgresql://h/work?schema=team"),
        ("postgresql:///work?host=/run/pg&schema=x%20y", "postgresql:///work?host=/run/pg&schema=x%20y"),
        ("postgresql://h/work?schema=holdfast", "postgresql://h/work"),
        (f"postgresql://h/work?password={SECRET}&sslpassword={SECRET}", "postgresql://h/work"),
    ],
)
def test_what_is_shown_leads_to_the_same_place(url, shown):
    assert read_address(url).url == shown


def test_our_own_settings_are_taken_out_and_the_rest_is_left_to_libpq():
    address = read_address(
        "postgresql://h/d?schema=s&pool_size=3&reconnect_seconds=1.5&lock_seconds=0.25&connect_timeout=7"
    )
    assert (address.schema, address.pool_size) == ("s", 3)
    assert (address.reconnect_seconds, address.lock_seconds) == (1.5, 0.25)
    assert address.parameters["connect_timeout"] == "7"
    assert "schema" not in address.parameters


def test_a_dead_network_is_noticed_unless_the_url_says_otherwise():
    assert "tcp_user_timeout" in read_address("postgresql://h/d").parameters
    assert read_address("postgresql://h/d?tcp_user_timeout=0").parameters["tcp_user_timeout"] == "0"


def test_an_embedded_server_is_a_folder():
    address = read_address("postgresql+embedded:some/folder?schema=s")
    assert address == Address("postgresql+embedded:some/folder?schema=s", "s", {}, "some/folder")


def test_slashes_before_a_folder_are_a_manner_of_writing():
    assert read_address("postgresql+embedded://here").path == "here"
    assert read_address("postgresql+embedded:///there").path == "/there"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+embedded:",
        "postgresql+embedded:x?sslmode=require",
        f"postgresql://ann:{SECRET}@h:port:5/x",
        f"postgresql://ann:{SECRET}@h/x?nonsense=1",
        f"postgresql://ann:{SECRET}@h/x?pool_size=0",
        f"postgresql://ann:{SECRET}@h/x?lock_seconds=-1",
        f"postgresql://ann:{SECRET}@h/x?reconnect_seconds=soon",
        f"postgresql://ann:{SECRET}@h/x?schema=",
        f"postgresql://ann:{SECRET}@h/x?schema={'x' * 64}",
        f"postgresql://ann:{SECRET}%zz@h/x",
        f"postgresql://ann:x@{SECRET}@h/x",
        f"postgresql://ann:x/{SECRET}@h/x",
        f"postgresql://ann:{SECRET}/y@h/x",
        f"postgresql://ann:x?{SECRET}@h/x",
    ],
)
def test_a_url_that_cannot_be_understood_is_refused_without_repeating_it(url):
    with pytest.raises(ConfigError) as caught:
        read_address(url)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
