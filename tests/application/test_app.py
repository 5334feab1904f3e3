"""An app holds what a program brings along, and decorators fill it."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.application.app import App, check_brought
from holdfast.application.handlers import HandlerRegistry
from holdfast.domain.errors import ConfigError
from holdfast.domain.event import Event
from holdfast.domain.plain import TypeRegistry
from holdfast.domain.reducers import REDUCERS
from holdfast.domain.run_events import RUN_REDUCERS


def test_an_app_begins_with_the_reducers_that_come_with_holdfast() -> None:
    app = App()
    assert dict(app.reducers) == {**REDUCERS, **RUN_REDUCERS}
    assert app.handlers.list_handlers() == []
    assert app.schema_version == "1.0.0"
    assert app.types is None


def test_decorators_register_and_leave_the_function_as_it_is() -> None:
    app = App()

    @app.handler("resume")
    def resume(context: Any) -> None:
        return None

    @app.reducer("COUNTED")
    def count(fields: Any, event: Event) -> dict[str, Any]:
        return {**fields, "count": fields.get("count", 0) + 1}

    @app.migration("1.0.0", "1.1.0")
    def step(state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "new": True}

    assert app.handlers.get("resume") is resume
    assert app.reducers["COUNTED"] is count
    assert step({"a": 1}) == {"a": 1, "new": True}


def test_one_app_does_not_change_another() -> None:
    app = App()
    app.reducer("COUNTED")(lambda fields, event: dict(fields))
    assert "COUNTED" not in App().reducers
    assert "COUNTED" not in REDUCERS


def test_a_registry_that_is_empty_yet_is_kept() -> None:
    handlers, types = HandlerRegistry(), TypeRegistry()
    app = App(schema_version="2.0.0", handlers=handlers, types=types)
    assert app.handlers is handlers
    assert app.types is types
    assert app.schema_version == "2.0.0"


def test_what_a_program_brings_along_is_taken_or_nothing() -> None:
    check_brought(None, None, None)
    check_brought(App(), TypeRegistry(), lambda pointer, placeholder: None)


@pytest.mark.parametrize(
    ("brought", "told"),
    [
        ({"app": b"x"}, r"^app is of type bytes.*a holdfast\.App itself"),
        ({"app": "flows:app"}, "^app is of type str"),
        ({"registry": {}}, r"^registry is of type dict.*a holdfast\.TypeRegistry"),
        ({"resolver": "env:KEY"}, "^resolver is of type str.*a function itself"),
    ],
)
def test_what_cannot_be_brought_along_is_refused(brought: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        check_brought(**{"app": None, "registry": None, "resolver": None, **brought})
