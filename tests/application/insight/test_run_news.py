"""Workflows that moved, as the trail tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.application.insight import run_news
from holdfast.application.insight.run_news import RunNews
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointCorruptError
from tests.application.services import make_kit


def test_whoever_moved_is_named_once_and_the_last_one_first() -> None:
    kit = make_kit()
    service, news = CheckpointService(kit), RunNews(kit.store)
    for number, name in enumerate(["a", "b", "a", "c"]):
        service.create_checkpoint(name, {"n": number})
    assert news.names() == ["c", "a", "b"]
    assert news.names() == []
    service.append_event("b", "SOMETHING", {})
    assert news.names() == ["b"]


def test_of_a_long_trail_only_the_end_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_news, "ENTRIES_MAX", 2)
    kit = make_kit()
    service, news = CheckpointService(kit), RunNews(kit.store)
    for name in "abcdef":
        service.create_checkpoint(name, {})
    assert news.names() == ["f", "e"]


def test_damage_hides_no_news_that_can_be_read() -> None:
    class Damaged:
        def __init__(self, store: Any) -> None:
            self._store = store
            self.is_gone = False

        def __getattr__(self, name: str) -> Any:
            return getattr(self._store, name)

        def leaves(self, *, after: int = 0) -> Iterator[bytes]:
            if self.is_gone:
                raise CheckpointCorruptError("no order")
            *others, last = self._store.leaves(after=after)
            yield from (*others, last[:-9] + b"\n")

    store = Damaged(make_kit().store)
    kit = make_kit(store)
    service, news = CheckpointService(kit), RunNews(kit.store)
    for name in "ab":
        service.create_checkpoint(name, {})
    store.is_gone = True
    assert news.names() == []
    store.is_gone = False
    assert news.names() == ["a"]
