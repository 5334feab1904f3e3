"""Redactors are made late, and wrong settings are found early."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.adapters.redactors import passing_redactor, redactor_maker
from holdfast.domain.errors import ConfigError
from holdfast.domain.placeholders import is_placeholder
from tests.canaries import TOKENS


def test_a_redactor_works_under_the_key_it_is_given() -> None:
    make = redactor_maker("re", None)
    assert make(b"k" * 32).text(TOKENS[0].secret) == redactor_maker("re2", None)(b"k" * 32).text(
        TOKENS[0].secret
    )
    assert make(b"k" * 32).text(TOKENS[0].secret) != make(b"l" * 32).text(TOKENS[0].secret)


def test_one_that_serves_no_store_has_a_key_of_its_own() -> None:
    hidden = passing_redactor().text(TOKENS[0].secret)
    assert is_placeholder(hidden)
    assert passing_redactor().text(TOKENS[0].secret) != hidden


def test_wrong_settings_are_found_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'pcre' is unknown"):
        redactor_maker("pcre", None)
    with pytest.raises(ConfigError, match="cannot be read"):
        redactor_maker("auto", str(tmp_path / "none.toml"))


def test_nothing_is_compiled_before_a_redactor_is_made() -> None:
    program = (
        "import sys; from holdfast.adapters.redactors import redactor_maker; redactor_maker('auto', None);"
        "assert not {'re2', 'holdfast.domain.catalogue'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
