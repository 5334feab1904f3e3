"""A service for coroutines is opened by awaiting it, or for a block."""

from __future__ import annotations

import asyncio

from holdfast.application.aio import AsyncCheckpointService
from holdfast.application.async_opening import AsyncOpening
from tests.application.services import make_kit


def test_it_is_awaited_or_used_for_a_block() -> None:
    async def use() -> None:
        service = await AsyncOpening(make_kit)
        assert isinstance(service, AsyncCheckpointService)
        await service.close()
        async with AsyncOpening(make_kit) as another:
            await another.create_checkpoint("W", {"a": 1})

    asyncio.run(use())


def test_one_that_was_never_opened_has_nothing_to_close() -> None:
    asyncio.run(AsyncOpening(make_kit).__aexit__(None, None, None))
