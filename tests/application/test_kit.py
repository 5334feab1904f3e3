"""The kit's own defaults are those of the configuration: who builds one by hand gets the same service."""

from __future__ import annotations

from dataclasses import fields

from holdfast.adapters.memory import MemoryStore
from holdfast.application.kit import Kit
from holdfast.bootstrap import build_kit
from holdfast.config import Config


def test_a_kit_built_by_hand_has_the_settings_of_a_default_configuration() -> None:
    built = build_kit(MemoryStore(), Config())
    by_hand = Kit(built.store, built.packer, built.formats, built.registry, built.clock, built.ids)
    assert [getattr(by_hand, item.name) for item in fields(Kit)] == [
        getattr(built, item.name) for item in fields(Kit)
    ]
