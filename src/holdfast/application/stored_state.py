"""One state, remembered or read back, of which only the parts that are asked for are made."""

from __future__ import annotations

from typing import Any

from holdfast.application.kit import Kit
from holdfast.application.nodes import may_be_tagged, node_at, value_at
from holdfast.application.snapshot import Snapshot


class StoredState:
    """The state of one checkpoint; each answer is the caller's own."""

    def __init__(self, kit: Kit, state: Snapshot | dict[str, Any]) -> None:
        self._kit = kit
        self._state = state

    def at(self, *path: str) -> Any:
        """Answer the value at a path; None where there is none."""
        try:
            return self._remembered(path) if isinstance(self._state, Snapshot) else self._read_back(path)
        except KeyError:
            return None

    def _remembered(self, path: tuple[str, ...]) -> Any:
        assert isinstance(self._state, Snapshot)
        node, rest = node_at(self._state.root, path)
        plain = value_at(node, rest, self._kit.packer)
        return self._kit.registry.revive(plain, owned=True) if may_be_tagged(node) else plain

    def _read_back(self, path: tuple[str, ...]) -> Any:
        value: Any = self._state
        for step in path:
            value = value[step]
        return value
