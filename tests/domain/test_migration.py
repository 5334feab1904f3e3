"""Migrations: the shortest way is found, and what goes wrong on it is said."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import (
    ConfigError,
    InvalidStateError,
    MigrationFailedError,
    UnsupportedVersionError,
)
from holdfast.domain.migration import MigrationRegistry, check_version, is_newer

VERSIONS = [f"1.{minor}.0" for minor in range(6)]
PAIRS = st.tuples(st.sampled_from(VERSIONS), st.sampled_from(VERSIONS)).filter(
    lambda pair: pair[0] != pair[1]
)
GRAPHS = st.lists(PAIRS, unique=True, max_size=18)


def registry_of(pairs: Iterable[tuple[str, str]]) -> MigrationRegistry:
    """Make a registry whose steps write down that they were taken."""
    registry = MigrationRegistry()
    for source, target in pairs:
        registry.register(source, target, noting(f"{source} -> {target}"))
    return registry


def noting(name: str) -> Any:
    return lambda fields: {**fields, "taken": [*fields.get("taken", ()), name]}


def shortest_by_trying(pairs: set[tuple[str, str]], source: str, target: str) -> int | None:
    """Try every order of every subset of the versions between, the small ones first."""
    between = [version for version in VERSIONS if version not in (source, target)]
    for length in range(len(between) + 1):
        for middle in permutations(between, length):
            way = [source, *middle, target]
            if all(step in pairs for step in pairwise(way)):
                return length + 1
    return None


@given(pairs=GRAPHS, source=st.sampled_from(VERSIONS), target=st.sampled_from(VERSIONS))
def test_a_chain_is_as_short_as_any_and_leads_from_source_to_target(
    pairs: list[tuple[str, str]], source: str, target: str
) -> None:
    registry = registry_of(pairs)
    expected = 0 if source == target else shortest_by_trying(set(pairs), source, target)
    if expected is None:
        with pytest.raises(UnsupportedVersionError):
            registry.chain(source, target)
        return
    chain = registry.chain(source, target)
    assert len(chain) == expected
    versions = [source, *(step.target for step in chain)]
    assert [step.source for step in chain] == versions[:-1]
    assert versions[-1] == target


@given(pairs=GRAPHS, source=st.sampled_from(VERSIONS), target=st.sampled_from(VERSIONS))
def test_a_migration_takes_the_steps_of_the_chain_in_order(
    pairs: list[tuple[str, str]], source: str, target: str
) -> None:
    registry = registry_of(pairs)
    try:
        chain = registry.chain(source, target)
    except UnsupportedVersionError:
        return
    migrated = registry.migrate({"kept": 1}, source, target)
    assert migrated.pop("taken", []) == [str(step) for step in chain]
    assert migrated == {"kept": 1}


@given(pairs=GRAPHS, source=st.sampled_from(VERSIONS), target=st.sampled_from(VERSIONS))
def test_the_same_registrations_always_give_the_same_chain(
    pairs: list[tuple[str, str]], source: str, target: str
) -> None:
    def answer() -> object:
        try:
            return list(map(str, registry_of(pairs).chain(source, target)))
        except UnsupportedVersionError as problem:
            return str(problem)

    assert answer() == answer()


def test_a_direct_step_beats_a_way_of_many() -> None:
    registry = registry_of([("1.0.0", "1.1.0"), ("1.1.0", "1.2.0"), ("1.0.0", "1.2.0")])
    assert list(map(str, registry.chain("1.0.0", "1.2.0"))) == ["1.0.0 -> 1.2.0"]


def test_of_two_equal_ways_the_one_registered_first_is_taken() -> None:
    registry = registry_of(
        [("1.0.0", "1.2.0"), ("1.0.0", "1.1.0"), ("1.1.0", "2.0.0"), ("1.2.0", "2.0.0")],
    )
    assert [step.target for step in registry.chain("1.0.0", "2.0.0")] == ["1.2.0", "2.0.0"]


def test_a_chain_of_thousands_of_steps_is_found() -> None:
    names = [f"1.{number}.0" for number in range(5_000)]
    registry = registry_of(pairwise(names))
    assert len(registry.chain(names[0], names[-1])) == 4_999


def test_a_circle_is_left() -> None:
    registry = registry_of([("1.0.0", "1.1.0"), ("1.1.0", "1.0.0"), ("1.1.0", "1.2.0")])
    assert len(registry.chain("1.0.0", "1.2.0")) == 2


def test_there_may_be_a_way_back() -> None:
    registry = registry_of([("2.0.0", "1.0.0")])
    assert registry.migrate({}, "2.0.0", "1.0.0") == {"taken": ["2.0.0 -> 1.0.0"]}


def test_what_is_newer_than_known_is_refused_by_version_and_with_what_to_do() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"version 2\.0\.0.*up to 1\.0\.0") as refusal:
        MigrationRegistry().migrate({}, "2.0.0", "1.0.0", place="WF@3")
    assert refusal.value.place == "WF@3"
    assert "newer" in refusal.value.hint
    assert "--app" in refusal.value.hint


def test_what_is_newer_than_the_version_asked_for_is_no_fault_of_the_program() -> None:
    registry = registry_of([("1.0.0", "1.1.0"), ("1.1.0", "1.2.0")])
    with pytest.raises(UnsupportedVersionError, match=r"1\.2\.0, which is newer than .* 1\.1\.0") as refusal:
        registry.chain("1.2.0", "1.1.0", place="WF@3")
    assert refusal.value.place == "WF@3" and "program" not in refusal.value.hint


def test_a_missing_step_is_named() -> None:
    registry = registry_of([("1.0.0", "1.1.0")])
    with pytest.raises(UnsupportedVersionError, match="no migrations lead") as refusal:
        registry.chain("1.0.0", "1.2.0")
    assert '@app.migration("1.0.0", "1.2.0")' in refusal.value.hint


def test_a_version_that_is_none_is_refused_as_newer() -> None:
    with pytest.raises(UnsupportedVersionError, match="version banana"):
        MigrationRegistry().chain("banana", "1.0.0")


def test_a_step_that_raises_is_named_with_what_it_said() -> None:
    registry = MigrationRegistry()

    @registry.migration("1.0.0", "1.1.0")
    def broken(fields: dict[str, Any]) -> dict[str, Any]:
        return {"total": fields["amount"]}

    with pytest.raises(MigrationFailedError, match=r"1\.0\.0 -> 1\.1\.0.*KeyError") as failure:
        registry.migrate({}, "1.0.0", "1.1.0", place="WF@3")
    assert "as it was" in failure.value.hint
    assert isinstance(failure.value.__cause__, KeyError)


def test_an_error_of_the_library_in_a_step_keeps_its_hint() -> None:
    def refusing(fields: dict[str, Any]) -> dict[str, Any]:
        raise InvalidStateError("the plan is empty", hint="Make a plan.")

    registry = MigrationRegistry()
    registry.register("1.0.0", "1.1.0", refusing)
    with pytest.raises(MigrationFailedError, match="the plan is empty") as failure:
        registry.migrate({}, "1.0.0", "1.1.0")
    assert failure.value.hint == "Make a plan."


@pytest.mark.parametrize("answer", [None, [], "fields", {1: 2}])
def test_a_step_that_answers_no_fields_is_told_to(answer: Any) -> None:
    registry = MigrationRegistry()
    registry.register("1.0.0", "1.1.0", lambda fields: answer)
    with pytest.raises(MigrationFailedError, match="not the fields") as failure:
        registry.migrate({"a": 1}, "1.0.0", "1.1.0")
    assert "return" in failure.value.hint


def test_nothing_is_done_between_a_version_and_itself() -> None:
    fields = {"a": 1}
    assert MigrationRegistry().migrate(fields, "7.0.0", "7.0.0") is fields


def test_a_second_step_between_the_same_versions_is_refused() -> None:
    registry = registry_of([("1.0.0", "1.1.0")])
    with pytest.raises(ConfigError, match="two migrations"):
        registry.register("1.0.0", "1.1.0", dict)
    assert len(registry.steps) == 1


def test_a_step_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(ConfigError, match="another version"):
        MigrationRegistry().register("1.0.0", "1.0.0", dict)


@pytest.mark.parametrize(
    "text", ["", "1", "1.0", "v1.0.0", "1.0.0-rc1", "01.0.0", "1.0.0\n", "1.0.1234567", 3]
)
def test_only_three_numbers_are_a_version(text: Any) -> None:
    with pytest.raises(ConfigError, match="no version"):
        check_version(text)
    with pytest.raises(ConfigError, match="no version"):
        MigrationRegistry().register("1.0.0", text, dict)


def test_versions_are_compared_as_numbers() -> None:
    assert is_newer("1.10.0", "1.9.0")
    assert not is_newer("1.9.0", "1.10.0")
    assert not is_newer("1.0.0", "1.0.0")
    assert is_newer("what", "1.0.0")
    assert not is_newer("1.0.0", "what")
