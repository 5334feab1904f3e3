"""Connections on which nobody asks for anything: they are closed, so that they keep no place for ever."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

#: So long a request may take from its first byte, or from the opening of a connection, to its last header.
HEADERS_SECONDS = 15.0


class PatientProtocol(H11Protocol):
    """HTTP on one connection; uvicorn itself gives up only those that have been answered once."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not looked at: those of uvloop are transports by what they do, and by no class.
        super().connection_made(cast(asyncio.Transport, transport))
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # From here on uvicorn counts, until the next byte comes.
        self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Count the time while no request is being answered; more bytes do not start it anew."""
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._forget()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEADERS_SECONDS, self.transport.close)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
