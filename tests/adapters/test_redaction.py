"""Both engines find the same, and the faster one is taken if it is there."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.adapters import redaction
from holdfast.adapters.redaction import engine
from holdfast.domain.candidates import CandidateScanner
from holdfast.domain.catalogue import EXPRESSION
from holdfast.domain.errors import ConfigError
from holdfast.domain.redaction import Redactor, Rules
from tests.canaries import CANARIES

pieces = st.sampled_from([canary.text for canary in CANARIES]) | st.text(max_size=8) | st.text(
    "\u00e9\u4e2d\U0001f600 =:'\"@/", max_size=6
)  # fmt: skip

RE2, RE = engine("re2")(EXPRESSION), engine("re")(EXPRESSION)


@pytest.mark.sweep
@settings(max_examples=100, deadline=None)
@given(st.lists(pieces, max_size=6).map("".join))
def test_the_engines_find_the_same_at_the_same_places(text: str) -> None:
    assert list(RE2.matches(text)) == list(RE.matches(text))


@pytest.mark.parametrize("name", ["re2", "re"])
def test_places_are_counted_in_letters(name: str) -> None:
    text = "\u00e9\u4e2d\U0001f600 ab \U0001f600ab"
    assert [(match.start, match.end, match.group) for match in engine(name)("(ab)").matches(text)] == [
        (4, 6, 1), (8, 10, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["re2", "re"])
def test_lone_surrogates_do_no_harm(name: str) -> None:
    text = f"\ud800 {CANARIES[0].text} \udfff"
    (match,) = engine(name)(EXPRESSION).matches(text)
    assert text[match.secret_start : match.secret_end] == CANARIES[0].secret


def test_without_the_package_the_standard_library_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not isinstance(engine()(EXPRESSION), CandidateScanner)
    assert engine("auto") is engine("re2")
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(redaction, "find_spec", lambda name: None if name == "re2" else find_spec(name))
    assert isinstance(engine()(EXPRESSION), CandidateScanner)
    with pytest.raises(ConfigError, match=r"holdfast\[redaction\]"):
        engine("re2")


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(ConfigError, match="'pcre' is unknown"):
        engine("pcre")


def test_a_pattern_that_re2_does_not_take_is_refused() -> None:
    with pytest.raises(ConfigError, match="re2 does not take"):
        engine("re2")("(?=a)")


def rules_in(folder: Path, text: str) -> Rules:
    path = folder / "patterns.toml"
    path.write_text(text, encoding="utf-8")
    return redaction.read_rules(str(path))


def test_a_file_says_what_else_is_hidden_and_what_is_not(tmp_path: Path) -> None:
    rules = rules_in(
        tmp_path,
        "keys = ['home_address']\nallowed_keys = ['session_token']\nallowed_values = ['changeme']\n"
        "[patterns]\nemployee = 'EMP-[0-9]{6}'\n",
    )
    redactor = Redactor(b"k" * 16, engine(), rules)
    tree = {"homeAddress": "Main St 1", "session_token": "abc", "password": "changeme", "who": "EMP-123456"}
    hidden, paths = redactor.tree(tree)
    assert paths == [["homeAddress"], ["who"]]
    assert hidden["who"].startswith("[REDACTED:employee:")
    assert rules_in(tmp_path, "") == Rules()


@pytest.mark.parametrize(
    "text",
    [
        "key = ['x']",
        "keys = 'x'",
        "keys = [1]",
        "patterns = ['x']",
        "[patterns]\na = 1",
        "[patterns]\na = '('",
        "[patterns]\na = '(?=x)'",
        "[patterns]\n'!' = 'x'",
        "keys = ['']",
        "no toml",
    ],
)
def test_a_file_that_says_anything_else_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        rules_in(tmp_path, text)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        redaction.read_rules(str(tmp_path / "none.toml"))
    assert caught.value.place.endswith("none.toml")


def test_patterns_are_compiled_once_in_a_process() -> None:
    assert engine("re2")(EXPRESSION) is RE2
    assert engine("re")(EXPRESSION) is RE


def test_a_forked_child_searches_with_patterns_of_its_own() -> None:
    before = redaction._compile_re2(EXPRESSION)
    assert list(before.matches(CANARIES[0].text))
    redaction._forget()
    after = redaction._compile_re2(EXPRESSION)
    assert list(after.matches(CANARIES[0].text))
    for name in ("_quick", "_exact"):
        assert getattr(after, name)._regexp is not getattr(before, name)._regexp
