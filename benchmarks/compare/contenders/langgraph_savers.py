"""The savers that LangGraph is measured with, opened as their documentation opens them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from benchmarks.compare.contender import Contender, path_of
from benchmarks.compare.contenders.langgraph import DeltaChat, LangGraph, Unsaved
from holdfast.domain.errors import StateSizeWarning
from holdfast.integrations.langgraph import HoldfastSaver

PACKAGES = ("langgraph", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres", "apsw", "psycopg")
#: Connections of a pool; more do not help on few cores.
POOLED = 10

unsaved = Unsaved


def sqlite(url: str, writers: int) -> Contender:
    return LangGraph(SqliteSaver.from_conn_string(path_of(url)))


def sqlite_delta(url: str, writers: int) -> Contender:
    return LangGraph(SqliteSaver.from_conn_string(path_of(url)), DeltaChat)


def postgres(url: str, writers: int) -> Contender:
    return LangGraph(_postgres(url, writers))


def postgres_delta(url: str, writers: int) -> Contender:
    return LangGraph(_postgres(url, writers), DeltaChat)


def holdfast(url: str, writers: int) -> Contender:
    warnings.simplefilter("ignore", StateSizeWarning)
    # Nothing is removed in the background, so that growth is seen; pruning is asked for.
    return LangGraph(HoldfastSaver.open(url, retain=False))


def _postgres(url: str, writers: int) -> AbstractContextManager[Any]:
    """One connection for one writer; a pool for many."""
    return PostgresSaver.from_conn_string(url) if writers == 1 else _pooled(url, writers)


@contextmanager
def _pooled(url: str, writers: int) -> Iterator[PostgresSaver]:
    keywords = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    with ConnectionPool(url, max_size=min(writers, POOLED), kwargs=keywords) as pool:
        yield PostgresSaver(pool)  # type: ignore[arg-type]
