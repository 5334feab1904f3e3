"""Making redactors: settings are checked at once, patterns are compiled when the first text comes."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.domain.value import value

if TYPE_CHECKING:
    from holdfast.domain.placeholders import Key
    from holdfast.domain.redaction import Redactor, Rules

_KEY_BYTES = 32


def redactor_maker(engine_name: str, patterns_path: str | None) -> Callable[[Key], Redactor]:
    """Answer what makes a redactor for a key; for equal settings it is equal.

    Raises:
        ConfigError: the engine is not installed, or the patterns cannot be used.
    """
    rules = None
    if engine_name != "auto" or patterns_path is not None:
        from holdfast.adapters.redaction import engine, read_rules

        engine(engine_name)
        rules = None if patterns_path is None else read_rules(patterns_path)
    return _Maker(engine_name, rules)


@value
class _Maker:
    engine_name: str
    rules: Rules | None

    def __call__(self, key: Key) -> Redactor:
        # Takes a tenth of a second, which nobody should wait for who only looks.
        from holdfast.adapters.redaction import engine
        from holdfast.domain.redaction import Redactor

        return Redactor(key, engine(self.engine_name), self.rules)


def passing_redactor() -> Redactor:
    """Answer what hides secrets in texts that go to no store, under a key that nobody keeps."""
    return redactor_maker("auto", None)(secrets.token_bytes(_KEY_BYTES))
