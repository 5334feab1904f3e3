"""Handlers are found by name, and whoever is not found is suggested a name that is."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.application.handlers import HandlerRegistry
from holdfast.domain.errors import ConfigError, HandlerNotFoundError


def resume(context: Any) -> str:
    return "W"


def test_what_is_registered_is_found_by_its_name() -> None:
    registry = HandlerRegistry()
    registry.register("resume_stage", resume)
    assert registry.get("resume_stage") is resume
    assert registry.has("resume_stage") and not registry.has("resume_agent")


def test_a_decorator_registers_and_leaves_the_function_as_it_is() -> None:
    registry = HandlerRegistry()

    @registry.handler("resume_agent")
    async def resume_agent(context: Any) -> str:
        return "W"

    assert registry.get("resume_agent") is resume_agent


def test_names_are_listed_in_order() -> None:
    registry = HandlerRegistry()
    for name in ("b", "a", "c"):
        registry.register(name, resume)
    assert registry.list_handlers() == ["a", "b", "c"]


def test_the_last_one_of_a_name_counts() -> None:
    registry = HandlerRegistry()
    registry.register("a", resume)
    registry.register("a", print)
    assert registry.get("a") is print


def test_an_object_that_can_resume_is_a_handler_too() -> None:
    class Team:
        def resume(self, context: Any) -> str:
            return "team"

    registry = HandlerRegistry()
    registry.register("team", Team())
    assert registry.get("team")("anything") == "team"


@pytest.mark.parametrize("name", ["", "  ", None])
def test_a_handler_needs_a_name(name: Any) -> None:
    with pytest.raises(ConfigError, match="needs a name"):
        HandlerRegistry().register(name, resume)


def test_what_cannot_be_called_is_no_handler() -> None:
    with pytest.raises(ConfigError, match="a str cannot resume anything"):
        HandlerRegistry().register("a", "resume")


def test_one_that_is_not_there_is_refused_with_what_may_have_been_meant() -> None:
    registry = HandlerRegistry()
    with pytest.raises(HandlerNotFoundError, match=r"@app\.handler"):
        registry.get("resume_stage")
    registry.register("resume_stage", resume)
    with pytest.raises(HandlerNotFoundError, match="Did you mean 'resume_stage'"):
        registry.get("resume_stages")
    with pytest.raises(HandlerNotFoundError, match="those that are: resume_stage"):
        registry.get("something else")
