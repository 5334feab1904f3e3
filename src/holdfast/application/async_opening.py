"""A service for coroutines that is about to be opened."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any

from holdfast.application.aio import AsyncCheckpointService
from holdfast.application.kit import Kit


class AsyncOpening:
    """A service about to be opened: await it, or use it with `async with`."""

    def __init__(self, build: Callable[[], Kit]) -> None:
        self._build = build
        self._service: AsyncCheckpointService | None = None

    def __await__(self) -> Generator[Any, None, AsyncCheckpointService]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncCheckpointService:
        return await self._open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._service is not None:
            await self._service.close()

    async def _open(self) -> AsyncCheckpointService:
        self._service = await asyncio.to_thread(lambda: AsyncCheckpointService(self._build()))
        return self._service
