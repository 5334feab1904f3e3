"""The conformance suite as a whole: green on a store that keeps its promises, and complete."""

from __future__ import annotations

from holdfast.adapters.memory import MemoryStore
from holdfast.conformance.store import StoreConformance
from holdfast.ports import Store
from tests.conformance.suite import failures


def test_a_store_that_keeps_its_promises_stays_green() -> None:
    assert failures(MemoryStore, StoreConformance) == []


def test_every_method_of_the_port_is_called() -> None:
    called: set[str] = set()

    class Noting(MemoryStore):
        def __getattribute__(self, name: str) -> object:
            called.add(name)
            return super().__getattribute__(name)

    failures(Noting, StoreConformance)
    assert {name for name in vars(Store) if not name.startswith("_")} <= called
