"""Running the conformance suite on a store that may break it."""

from __future__ import annotations

from holdfast.conformance.history import Opening
from holdfast.ports import Store


def failures(kind: type[Store], suite: type[Opening]) -> list[str]:
    """Run a suite on a kind of store; answer what went red."""

    class Suite(suite):  # type: ignore[misc, valid-type]
        def open_store(self) -> Store:
            return kind()

    red = []
    for name in (name for name in dir(Suite) if name.startswith("test_")):
        try:
            getattr(Suite(), name)()
        except Exception:
            red.append(name)
    return red
