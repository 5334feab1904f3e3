"""The patterns can be searched for in linear time, by their structure."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from holdfast.domain.assignments import EXPRESSION as ASSIGNMENT
from holdfast.domain.catalogue import ALTERNATIVES
from holdfast.domain.credential_patterns import IN_CONTEXT, TOKENS, any_case

_parser: Any = import_module("re._parser")
_UNBOUNDED = _parser.MAXREPEAT
_LETTERS = frozenset(range(256))


def parsed(expression: str) -> Any:
    return _parser.parse(expression, 256)


def parts(tree: Any) -> Iterator[tuple[str, Any]]:
    """Give every part of a parsed pattern, at any depth, by the name of what it is."""
    for what, value in tree:
        yield str(what), value
        if str(what) in ("MAX_REPEAT", "MIN_REPEAT"):
            yield from parts(value[2])
        elif str(what) == "SUBPATTERN":
            yield from parts(value[3])
        elif str(what) == "BRANCH":
            for branch in value[1]:
                yield from parts(branch)


def letters(what: str, value: Any) -> frozenset[int]:
    """Give the bytes that one part can begin with."""
    if what == "LITERAL":
        return frozenset({value})
    if what == "NOT_LITERAL":
        return _LETTERS - {value}
    if what == "IN":
        found = frozenset().union(
            *(letters(str(kind), inner) for kind, inner in value if str(kind) != "NEGATE")
        )
        return _LETTERS - found if str(value[0][0]) == "NEGATE" else found
    if what == "RANGE":
        return frozenset(range(value[0], value[1] + 1))
    if what == "BRANCH":
        return frozenset().union(*(first(branch) for branch in value[1]))
    if what == "SUBPATTERN":
        return first(value[3])
    if what in ("MAX_REPEAT", "MIN_REPEAT"):
        return first(value[2])
    raise AssertionError(f"{what} is not known here")


def first(tree: Any) -> frozenset[int]:
    """Give the bytes that a sequence can begin with."""
    found: frozenset[int] = frozenset()
    for what, value in tree:
        found |= letters(str(what), value)
        if str(what) not in ("MAX_REPEAT", "MIN_REPEAT") or value[0] > 0:
            break
    return found


@pytest.mark.parametrize("expression", ALTERNATIVES)
def test_nothing_looks_around_or_back_or_at_edges(expression: str) -> None:
    kinds = {what for what, _ in parts(parsed(expression))}
    assert kinds <= {"LITERAL", "NOT_LITERAL", "IN", "BRANCH", "SUBPATTERN", "MAX_REPEAT"}


@pytest.mark.parametrize("expression", ALTERNATIVES)
def test_a_repeat_in_a_repeat_can_be_read_in_one_way_only(expression: str) -> None:
    for what, value in parts(parsed(expression)):
        if what != "MAX_REPEAT" or value[1] != _UNBOUNDED:
            continue
        inner = [
            repeat for kind, repeat in parts(value[2]) if kind == "MAX_REPEAT" and repeat[1] == _UNBOUNDED
        ]
        if inner:
            # What ends a round must not be able to begin the next: there is one way to part the rounds.
            assert not first(inner[-1][2]) & first(value[2]), expression


@pytest.mark.parametrize("kind", [*TOKENS, *IN_CONTEXT], ids=lambda kind: kind.name)
def test_every_kind_hides_one_group_and_begins_with_something_fixed(kind: Any) -> None:
    groups = [value for what, value in parts(parsed(kind.expression)) if what == "SUBPATTERN" and value[0]]
    assert len(groups) == 1
    assert len(first(parsed(kind.expression))) <= 2


def test_an_assignment_hides_one_group_for_each_form() -> None:
    from holdfast.domain.assignments import FORMS

    groups = [value for what, value in parts(parsed(ASSIGNMENT)) if what == "SUBPATTERN" and value[0]]
    assert len(groups) == len(FORMS)


def test_any_case_is_spelt_out() -> None:
    assert any_case("ab-1") == "[Aa][Bb]-1"
