"""From the setting `resolver` to what gives hidden values back, where it names secrets and no code."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.adapters.crypto.key_sources import KINDS, read_secrets
from holdfast.application.kit import Kit
from holdfast.application.known_secrets import resolver_of
from holdfast.application.revealing import Resolver


def known_secrets(text: str) -> Callable[[Kit], Resolver] | None:
    """Answer what makes a resolver of what `file:PATH`, `env:NAME` or `command:PROGRAM` has.

    The secrets are read anew for each resolver, and kept nowhere else. None: the text names no such thing.
    """
    kind, _, rest = text.partition(":")
    if kind not in KINDS or not rest:
        return None
    return lambda kit: resolver_of(kit, read_secrets(text))
