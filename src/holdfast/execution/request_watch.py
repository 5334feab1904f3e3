"""Looking for what others ask of running workflows: one look for all runs of a loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

from holdfast.application.requests import Requests
from holdfast.domain.request import Request

#: Carries a request out; answers whether it is settled.
OnRequest = Callable[[Request], Awaitable[bool]]
_LOG = logging.getLogger("holdfast")


class RequestWatch:
    """Polls one store for requests and brings them to the runs they are for."""

    def __init__(self, requests: Requests, poll_seconds: float) -> None:
        self._requests = requests
        self._poll_seconds = poll_seconds
        self._runs: dict[str, OnRequest] = {}
        self._task: asyncio.Task[None] | None = None
        #: Held while requests are carried out and taken away: nobody leaves half-way.
        self._carrying = asyncio.Lock()

    def enter(self, workflow_id: str, on_request: OnRequest) -> None:
        """Bring requests for a workflow from now on."""
        self._runs[workflow_id] = on_request
        if self._task is None:
            self._task = asyncio.ensure_future(self._serve())

    async def leave(self, workflow_id: str) -> bool:
        """Bring no more; answers whether nobody listens any longer."""
        self._runs.pop(workflow_id, None)
        if self._runs or self._task is None:
            return not self._runs
        task, self._task = self._task, None
        async with self._carrying:
            task.cancel()
        await asyncio.wait({task})
        # Somebody may have come meanwhile.
        return not self._runs

    async def look(self, workflow_id: str | None = None) -> None:
        """Look once, for all workflows or for one."""
        try:
            pending = await asyncio.to_thread(self._requests.pending, workflow_id)
            async with self._carrying:
                settled = [request.id for request in pending if await self._brought(request)]
                if settled:
                    await asyncio.to_thread(self._requests.settle, settled)
        except Exception as problem:
            # Whatever it is: others are asked of through this look too, and the next one may be better.
            _LOG.warning("requests could not be looked for: %s", problem)

    async def _brought(self, request: Request) -> bool:
        on_request = self._runs.get(request.workflow_id)
        if on_request is None:
            return False
        try:
            return await on_request(request)
        except Exception as problem:
            _LOG.warning("request %s could not be carried out: %s", request.id, problem)
            return False

    async def _serve(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(self._poll_seconds)


_WATCHES: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, RequestWatch]] = WeakKeyDictionary()


@asynccontextmanager
async def watched(
    requests: Requests, store_key: int, workflow_id: str, on_request: OnRequest, poll_seconds: float
) -> AsyncIterator[RequestWatch]:
    """Bring requests for a workflow meanwhile; runs over one open store share one look."""
    watches = _WATCHES.setdefault(asyncio.get_running_loop(), {})
    watch = watches.setdefault(store_key, RequestWatch(requests, poll_seconds))
    watch.enter(workflow_id, on_request)
    try:
        yield watch
    finally:
        if await watch.leave(workflow_id):
            watches.pop(store_key, None)
