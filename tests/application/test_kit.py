"""The kit's own defaults are those of the configuration: who builds one by hand gets the same service."""

from __future__ import annotations

from dataclasses import fields

from holdfast.adapters.memory import MemoryStore
from holdfast.application.kit import Kit
from holdfast.bootstrap import build_kit
from holdfast.config import Config

#: What a configuration leaves open is found out where the process runs: who it is, what is installed, and
#: what the program brings along.
_OF_THIS_PROCESS = {"session_id", "actor", "signing", "redactor", "app"}


def test_a_kit_built_by_hand_has_the_settings_of_a_default_configuration() -> None:
    built = build_kit(MemoryStore(), Config())
    by_hand = Kit(built.store, built.packer, built.formats, built.registry, built.clock, built.ids)
    settings = [item.name for item in fields(Kit) if item.name not in _OF_THIS_PROCESS]
    assert [getattr(by_hand, name) for name in settings] == [getattr(built, name) for name in settings]
