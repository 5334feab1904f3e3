"""The second store, for when neither the first one nor memory has room."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from holdfast.application.base import Bases
from holdfast.application.faults.waiting import Held, Spilled, Waiting
from holdfast.application.intent import EventIntent, Intent, StateIntent, make
from holdfast.application.kit import Kit
from holdfast.application.loading import load_base
from holdfast.application.restore import Restorer
from holdfast.application.secrecy.sealing import read_event
from holdfast.application.snapshot import from_plain
from holdfast.domain.errors import CheckpointError, CheckpointNotFoundError, CheckpointWriteError
from holdfast.domain.event import Event, decode_event
from holdfast.domain.record import Transition

#: How much is remembered of the states in the second store.
_CACHE_BYTES = 4 * 1024 * 1024

#: Opens the second store, sealed with the keys of the first where that is encrypted.
OpenSpare = Callable[[], Kit]


class Spare:
    """Keeps intents in a store of their own, which any Holdfast can read."""

    def __init__(self, open_kit: OpenSpare | None) -> None:
        self._open_kit = open_kit
        self._kit: Kit | None = None
        self._bases = Bases(_CACHE_BYTES)
        self._transitions: dict[tuple[str, int], tuple[tuple[Transition, ...], bool]] = {}

    @property
    def place(self) -> str | None:
        """Where it is; None as long as nothing is there."""
        return None if self._kit is None else self._kit.store.url

    def save(self, held: Held) -> Spilled:
        """Make one that waits durable here.

        Raises:
            CheckpointError: it is not possible.
        """
        assert not isinstance(held.intent, Spilled)
        kit, workflow_id = self._opened(), held.workflow_id
        with self._bases.slot(workflow_id) as slot:
            base = slot.base or load_base(kit, workflow_id).base
            # The trail of the first store tells of it once it is written there.
            made = make(kit, held.intent, base, None)
            [outcome] = kit.store.commit([made.commit])
            if outcome is not None:
                raise outcome
            slot.base = made.base
        if isinstance(held.intent, StateIntent):
            return Spilled(made.base.head.sequence, held.intent.subject, held.intent.size_bytes)
        number = made.base.head.event_seq
        self._transitions[workflow_id, number] = held.intent.transitions, held.intent.is_told
        return Spilled(number, bytes=len(made.commit.events[-1].data))

    def spill(self, held: Sequence[Held], waiting: Waiting) -> Exception | None:
        """Bring what waits in memory here, in order; answer what kept some of it from that."""
        try:
            for one in held:
                if not isinstance(one.intent, Spilled):
                    waiting.shrink(one, self.save(one))
        except (CheckpointError, OSError) as problem:
            return problem
        return None

    def load(self, workflow_id: str, spilled: Spilled) -> Intent:
        """Read back what was saved, verified."""
        kit = self._opened()
        if spilled.subject is None:
            transitions, is_told = self._transitions[workflow_id, spilled.number]
            return EventIntent(self._event(kit, workflow_id, spilled.number), transitions, is_told)
        restorer = Restorer(kit.store, kit.formats, kit.vault)
        tree = restorer.whole(restorer.restore(workflow_id, spilled.number))
        snapshot = from_plain(tree, kit.packer)
        return StateIntent(spilled.subject, snapshot, snapshot.size)

    def close(self) -> None:
        """Let go of the store; what is in it stays."""
        kit, self._kit = self._kit, None
        self._bases = Bases(_CACHE_BYTES)
        self._transitions.clear()
        if kit is not None:
            kit.store.close()

    def _opened(self) -> Kit:
        if self._kit is None:
            if self._open_kit is None:
                raise CheckpointWriteError(
                    "there is no second store", hint="Set emergency_path to a folder on another disk."
                )
            self._kit = self._open_kit()
        return self._kit

    def _event(self, kit: Kit, workflow_id: str, number: int) -> Event:
        for event in _events(kit, workflow_id, number):
            if event.seq == number:
                return replace(event, hash="", sealed=None)
        raise CheckpointNotFoundError(f"event {number} is not in the second store", place=kit.store.url)


def _events(kit: Kit, workflow_id: str, number: int) -> Iterator[Event]:
    """Read the event of a number, and the one before for its hash."""
    previous = None
    for line in kit.store.events(workflow_id, after=max(number - 2, 0)):
        event = decode_event(line, previous)
        yield read_event(kit.vault, event, workflow_id, previous)
        previous = event.hash
