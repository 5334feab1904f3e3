"""Stores that are served: one to act on, one of every kind of run to look at, and one that nobody changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from starlette.testclient import TestClient

from holdfast.server.desk import Desk
from holdfast.server.openapi import describe
from holdfast.server.operation import Operation
from tests.server import acts, reads
from tests.server.served import Caller, application, caller_for
from tests.sizes import daily

#: What is asked and answered is the same over any store; rooms that look into stores choose both every day.
KINDS = daily(["file", "sqlite"], ["sqlite"])


@pytest.fixture(scope="session", autouse=True)
def described_once() -> Iterator[None]:
    """Describe one table once: that is most of what it takes to begin serving, and always the same."""
    known: dict[int, tuple[Sequence[Operation], dict[str, Any]]] = {}

    def remembered(operations: Sequence[Operation]) -> dict[str, Any]:
        if id(operations) not in known:
            known[id(operations)] = (operations, describe(operations))
        return known[id(operations)][1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("holdfast.server.app.describe", remembered)
        yield


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: object) -> str:
    return acts.filled(f"{request.param}:{tmp_path}/store")


@pytest.fixture
def served(url: str) -> Iterator[tuple[Caller, Desk]]:
    with application(url) as (client, desk):
        yield caller_for(client, desk, "operator", name="ann"), desk


@pytest.fixture(params=KINDS)
def shown(request: pytest.FixtureRequest, tmp_path: object) -> Iterator[tuple[TestClient, Desk]]:
    with application(reads.filled(f"{request.param}:{tmp_path}/store")) as (client, desk):
        yield client, desk


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Caller, Caller]]:
    with reads.looked_at(tmp_path_factory.mktemp("still")) as (client, desk):
        yield caller_for(client, desk, "viewer"), caller_for(client, desk, "read")
