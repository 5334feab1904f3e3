"""Patterns of the user are checked, and made fit to stand together."""

from __future__ import annotations

import re

import pytest

from holdfast.adapters.redaction import engine
from holdfast.domain.errors import ConfigError
from holdfast.domain.user_patterns import combine, is_anchored, kind_name


def found(patterns: dict[str, str], text: str, name: str) -> list[tuple[str, int]]:
    scanner = engine(name)(combine(patterns))
    return [(text[match.start : match.end], match.group) for match in scanner.matches(text)]


@pytest.mark.parametrize("name", ["re2", "re"])
def test_each_pattern_is_one_group_whatever_groups_it_has(name: str) -> None:
    patterns = {"one": r"a(b)(c)?", "two": r"(?P<n>x)\(([(])", "three": "(?i)end|fin", "four": r"[(]\)"}
    assert found(patterns, "abc x(( ENDfin ab ()", name) == [
        ("abc", 1), ("x((", 2), ("END", 3), ("fin", 3), ("ab", 1), ("()", 4),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "pattern",
    ["(?=a)b", "(?!a)b", "(?<=a)b", "(?<!a)b", r"(a)\1", "(?P<x>a)(?P=x)", "(?>a)b", "a++b", "(?(1)a|b)"],
)
def test_what_cannot_be_searched_for_in_linear_time_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="linear"):
        combine({"mine": pattern})


@pytest.mark.parametrize("pattern", ["(", "[", "a**", "(?P<1>a)", "(?x)a", "x*", "", "a|", r"a\Z", "a{2000}"])
def test_what_is_no_pattern_or_matches_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="'mine'"):
        combine({"mine": pattern})


@pytest.mark.parametrize("pattern", [r"\(?=x", r"[(?=]+x", r"\\\\2", "a{0,1000}b", r"\d{4}-\d+"])
def test_letters_that_only_look_so_are_taken(pattern: str) -> None:
    for name in ("re2", "re"):
        engine(name)(combine({"mine": pattern}))


def test_a_pattern_means_the_same_alone_and_combined() -> None:
    for pattern in (r"EMP-\d{6}", r"(foo|bar)+", "(?s)a.b", r"\bx\b"):
        for text in ("EMP-123456 foobar a\nb x", "xx foofoo"):
            wanted = [match.group() for match in re.finditer(pattern, text)]
            assert [piece for piece, _ in found({"mine": pattern, "no": "zzz"}, text, "re")] == wanted
            assert [piece for piece, _ in found({"no": "zzz", "mine": pattern}, text, "re2")] == wanted


def test_names_are_shown_as_slugs() -> None:
    assert kind_name("Employee_Number 2") == "employee-number-2"
    for name in ("", "---", "x" * 41, "\u9375"):
        with pytest.raises(ConfigError, match="cannot name"):
            kind_name(name)


@pytest.mark.parametrize(("pattern", "answer"), [("^a", True), ("a$", True), (r"\bx", True), ("abc", False)])
def test_patterns_that_look_at_the_ends_are_known(pattern: str, answer: bool) -> None:
    assert is_anchored({"mine": pattern}) is answer
