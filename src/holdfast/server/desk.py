"""What every handler works with: the service over one store, and what the server keeps for itself."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import anyio

from holdfast.application.insight.lineage import Lineage
from holdfast.application.insight.runs import RunBook
from holdfast.application.kit import Kit
from holdfast.application.reading import Reader
from holdfast.application.revealing import Resolver
from holdfast.application.service import CheckpointService
from holdfast.application.trailing import acting_as, actor_of, correlate
from holdfast.application.travel.travelling import Point, TimeTravel
from holdfast.bootstrap import build_kit, open_store
from holdfast.config import Config
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.errors import StoreReadOnlyError
from holdfast.server.exports import Exports
from holdfast.server.identity import Doorkeeper
from holdfast.server.live import Live
from holdfast.server.looks import Looks
from holdfast.server.metrics import ServerMetrics
from holdfast.server.operation import Identity
from holdfast.server.operations import Operations
from holdfast.server.prune_plans import PrunePlans
from holdfast.server.settings import Settings

#: So long a request may look at workflows: at first, and once each was looked at.
_FIRST_SECONDS = 2.0
_SWEEP_SECONDS = 0.25


class Desk:
    """One store, open for as long as the server lives."""

    def __init__(self, kit: Kit, settings: Settings) -> None:
        self.kit = kit
        self.settings = settings
        self.service = CheckpointService(kit)
        self.reader = Reader(kit)
        self.travel = TimeTravel(kit, None, self.reader)
        self.runs = RunBook(kit, first_seconds=_FIRST_SECONDS, sweep_seconds=_SWEEP_SECONDS)
        self.lineage = Lineage(kit)
        self.metrics = ServerMetrics(kit)
        self.live = Live(kit.store, streams_max=settings.streams)
        self.doorkeeper = Doorkeeper(self.service.tokens, kit.actor or "server")
        self.operations = Operations(kit, self.service.audit)
        self.prune_plans = PrunePlans()
        self.exports = Exports()
        #: Makes what gives hidden values back, for one reveal; None where nobody named any.
        self.resolver_of: Callable[[Kit], Resolver] | None = None
        self._looks = Looks()

    @contextmanager
    def on_behalf(self, identity: Identity, request_id: str) -> Iterator[None]:
        """Let whatever is done inside be told as done by whoever asked, tied together by the request."""
        with acting_as(identity.name), correlate(request_id):
            yield

    def note(
        self,
        type: AuditType,
        workflow_id: str | None = None,
        facts: Mapping[str, int | str] | None = None,
        *,
        outcome: Outcome = Outcome.SUCCESS,
    ) -> None:
        """Tell the trail that something was looked at or refused; nobody waits for it.

        Raises:
            StoreReadOnlyError: it cannot be told, and the trail is strict.
        """
        self.service.audit.note_event(type, workflow_id=workflow_id, facts=facts, outcome=outcome)

    def note_looked(self, *points: Point) -> None:
        """Tell the trail that states are shown; once a minute is enough, whatever part of one is opened."""
        for point in points:
            if self._looks.is_new(f"{actor_of(self.kit)} {point}"):
                self.note(AuditType.STATE_READ, point.workflow_id, point.facts)

    def check_writable(self) -> None:
        """Refuse to change what is open for reading only.

        Raises:
            StoreReadOnlyError: it is.
        """
        if self.kit.store.read_only:
            raise StoreReadOnlyError(
                "this server only reads", place=self.kit.store.url, hint="Start it without --read-only."
            )

    @asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Let what works in the background live for as long as the server."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.live.run)
            yield
            tasks.cancel_scope.cancel()

    def end_streams(self) -> None:
        """End what would go on for ever."""
        self.live.end()

    def close(self) -> None:
        """Finish everything and close the store."""
        self.operations.close(self.settings.shutdown_seconds)
        self.exports.close()
        self.service.close()


def open_desk(config: Config, settings: Settings) -> Desk:
    """Open a store for a server.

    Raises:
        CheckpointError: it cannot be opened.
    """
    session = config.session or f"serve-{secrets.token_hex(4)}"
    config = replace(config, session=session, auto_recovery=False, enabled=True, metrics=True)
    store = open_store(config, read_only=settings.is_read_only, create=False)
    try:
        return Desk(build_kit(store, config), settings)
    except BaseException:
        store.close()
        raise
