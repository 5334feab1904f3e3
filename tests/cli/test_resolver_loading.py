"""What gives hidden values back is named by whoever runs a command, as a list of secrets or as a function."""

from __future__ import annotations

import sys
from typing import Any, cast

import pytest

from holdfast.cli.resolver_loading import resolver_named
from holdfast.domain.errors import ConfigError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "vault_of_ours.py").write_text(
        "number = 7\nclass Kind: pass\ndef resolve(pointer, placeholder): return pointer\n"
    )
    yield
    sys.modules.pop("vault_of_ours", None)


@pytest.mark.parametrize("name", ["vault_of_ours:resolve", "vault_of_ours.py:resolve"])
def test_a_function_is_found_in_a_module_and_in_a_file(name):
    make = resolver_named(name)
    assert make is not None and make(cast(Any, None))("/a", "x") == "/a"


def test_the_configuration_names_it_where_no_flag_does(monkeypatch):
    assert resolver_named(None) is None
    monkeypatch.setenv("HOLDFAST_RESOLVER", "vault_of_ours:resolve")
    assert resolver_named(None) is not None
    assert resolver_named("env:OTHER") is not None


@pytest.mark.parametrize("name", ["vault_of_ours:number", "vault_of_ours:Kind", "vault_of_ours:nothing"])
def test_what_is_no_function_is_refused(name):
    with pytest.raises(ConfigError):
        resolver_named(name)


def test_a_secret_that_was_given_by_mistake_is_not_repeated():
    with pytest.raises(ConfigError) as refused:
        resolver_named("correct-horse")
    assert "horse" not in str(refused.value) and "horse" not in refused.value.place
