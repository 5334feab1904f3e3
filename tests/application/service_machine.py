"""The service against a dictionary: random histories on any store, with reopening and crashes between."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Protocol

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointConflictError
from holdfast.domain.secret_names import secret_kind

WORKFLOWS = ("A", "B/../C", "D")
FORKS = ("fork-1", "fork-2")


class Bench(Protocol):
    """Where a machine gets its services from: always over the same store."""

    def open(self) -> CheckpointService:
        """Open the store, for the first time or again."""

    def crash(self, service: CheckpointService) -> CheckpointService:
        """End a service without closing it, as a killed process would, and open the store again."""

    def clean_up(self, service: CheckpointService) -> None:
        """Let go of everything."""


#: What is called as secrets are is hidden, and does not come back: that is not what this is about.
texts = st.text(max_size=8).filter(lambda text: secret_kind(text) is None)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.0, -0.0, 1.0, 1.5, float("inf")]),
    texts,
    st.sampled_from(["long " * 40, "x" * 300, b"raw" * 50]),
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(["a", "b", "log", "$hf", "deep", "é"])


def exact(value: Any) -> str:
    """Write a value so that `1`, `True`, `1.0` and `-0.0` differ, and the order of keys counts."""
    return repr(value)


def make_machine(make_bench: Callable[[], Bench]) -> type[RuleBasedStateMachine]:
    """Make the machine's class for one kind of store."""

    class ServiceMachine(RuleBasedStateMachine):
        @initialize()
        def start(self) -> None:
            self.bench = make_bench()
            self.service = self.bench.open()
            #: The state a caller holds, the checkpoints by sequence (None: removed), and the events.
            self.states: dict[str, dict[str, Any]] = {name: {} for name in WORKFLOWS}
            self.kept: dict[str, dict[int, str | None]] = {name: {} for name in (*WORKFLOWS, *FORKS)}
            self.events: dict[str, int] = dict.fromkeys((*WORKFLOWS, *FORKS), 0)

        @rule(name=st.sampled_from(WORKFLOWS), key=keys, value=values)
        def set_field(self, name: str, key: str, value: Any) -> None:
            self.states[name][key] = value

        @rule(name=st.sampled_from(WORKFLOWS), key=keys, value=values)
        def grow_a_list_or_a_string(self, name: str, key: str, value: Any) -> None:
            held = self.states[name].get(key)
            if isinstance(held, list):
                held.append(value)
            elif isinstance(held, str):
                self.states[name][key] = held + "more "
            else:
                self.states[name][key] = [value] * 70

        @rule(name=st.sampled_from(WORKFLOWS), key=keys)
        def drop_field(self, name: str, key: str) -> None:
            self.states[name].pop(key, None)

        @rule(name=st.sampled_from(WORKFLOWS), wait=st.booleans(), force=st.booleans())
        def create(self, name: str, wait: bool, force: bool) -> None:
            state, kept = self.states[name], self.kept[name]
            newest = max(kept, default=0)
            if wait:
                made = self.service.create_checkpoint(name, state, force=force)
            else:
                future = self.service.create_checkpoint(name, state, force=force, wait=False)
                made = future.result(60)
            if kept.get(newest) == exact(state) and not force:
                assert made.sequence == newest
                return
            assert made.sequence == newest + 1
            kept[made.sequence] = exact(state)
            self.events[name] += 1

        @rule(name=st.sampled_from(WORKFLOWS), count=st.integers(2, 6))
        def create_several_without_waiting(self, name: str, count: int) -> None:
            first = max(self.kept[name], default=0) + 1
            futures = []
            for number in range(count):
                self.states[name]["number"] = (first, number)
                futures.append(
                    self.service.create_checkpoint(name, self.states[name], force=True, wait=False)
                )
                self.kept[name][first + number] = exact(copy.deepcopy(self.states[name]))
            self.service.flush()
            assert [future.result().sequence for future in futures] == list(range(first, first + count))
            self.events[name] += count

        @rule(name=st.sampled_from(WORKFLOWS), data=st.dictionaries(texts, leaves, max_size=2))
        def append_event(self, name: str, data: dict[str, Any]) -> None:
            self.events[name] += 1
            event = self.service.append_event(name, "STEP", data)
            assert event.seq == self.events[name]
            assert exact(self.service.events(name, after=event.seq - 1)[0].data) == exact(data)

        @rule(name=st.sampled_from(WORKFLOWS))
        def expect_the_wrong_sequence(self, name: str) -> None:
            wrong = max(self.kept[name], default=0) + 1
            try:
                self.service.create_checkpoint(name, self.states[name], expected_sequence=wrong)
            except CheckpointConflictError:
                return
            raise AssertionError("a wrong expectation was not refused")

        @precondition(lambda self: any(self.living(name) for name in WORKFLOWS))
        @rule(data=st.data())
        def restore_any(self, data: st.DataObject) -> None:
            name = data.draw(st.sampled_from([name for name in WORKFLOWS if self.living(name)]))
            sequence = data.draw(st.sampled_from(self.living(name)))
            assert self.stored(name, sequence) == self.kept[name][sequence]

        @precondition(lambda self: any(self.living(name) for name in WORKFLOWS))
        @rule(data=st.data())
        def delete_any(self, data: st.DataObject) -> None:
            name = data.draw(st.sampled_from([name for name in WORKFLOWS if self.living(name)]))
            sequence = data.draw(st.sampled_from(self.living(name)))
            assert self.service.delete(f"{name}@{sequence}")
            self.kept[name][sequence] = None
            # The only one is a tombstone first, and its bytes go with an event of their own.
            self.events[name] += 1 if self.living(name) else 2

        @rule(name=st.sampled_from(WORKFLOWS), count=st.integers(0, 5))
        def prune(self, name: str, count: int) -> None:
            planned = self.service.prune_checkpoints(name, count, 0, dry_run=True)
            pruned = self.service.prune_checkpoints(name, count, 0)
            assert len(pruned.removed) <= len(planned.removed)
            for sequence in pruned.removed:
                assert self.kept[name][sequence] is not None
                self.kept[name][sequence] = None
            self.events[name] += bool(pruned.removed)
            newest = [sequence for sequence in self.kept[name] if sequence not in pruned.removed][-1:]
            assert len(self.living(name)) >= min(2, len(self.living(name)) + len(pruned.removed))
            assert all(
                self.kept[name][sequence] is None or sequence in self.living(name) for sequence in newest
            )

        @precondition(lambda self: any(self.living(name) for name in WORKFLOWS))
        @rule(data=st.data(), fork=st.sampled_from(FORKS))
        def fork(self, data: st.DataObject, fork: str) -> None:
            name = data.draw(st.sampled_from([name for name in WORKFLOWS if self.living(name)]))
            sequence = data.draw(st.sampled_from(self.living(name)))
            if self.kept[fork]:
                return
            assert self.service.fork_workflow(f"{name}@{sequence}", fork).sequence == 1
            self.kept[fork][1] = self.kept[name][sequence]
            self.events[fork] = 1

        @rule()
        def reopen(self) -> None:
            self.service.close()
            self.service = self.bench.open()

        @rule()
        def crash(self) -> None:
            self.service = self.bench.crash(self.service)

        @invariant()
        def listings_and_events_agree(self) -> None:
            for name in (*WORKFLOWS, *FORKS):
                listed = [meta.id.sequence for meta in self.service.list_checkpoints(name, limit=10_000)]
                assert listed == self.living(name)[::-1]
                assert self.service._engine.kit.store.head(name).event_seq == self.events[name]

        def living(self, name: str) -> list[int]:
            return [sequence for sequence, state in self.kept[name].items() if state is not None]

        def stored(self, name: str, sequence: int) -> str:
            return exact(self.service.restore_checkpoint(f"{name}@{sequence}").context)

        def teardown(self) -> None:
            if not hasattr(self, "service"):
                return
            try:
                for name in (*WORKFLOWS, *FORKS):
                    for sequence in self.living(name):
                        assert self.stored(name, sequence) == self.kept[name][sequence]
                        assert self.service.validate_checkpoint(f"{name}@{sequence}").problems == ()
                    self.service.events(name)
            finally:
                self.bench.clean_up(self.service)

    return ServiceMachine
