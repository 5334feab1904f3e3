"""Stores that are served: one to act on, one of every kind of run to look at, and one that nobody changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from holdfast.server.desk import Desk
from tests.server import acts, reads
from tests.server.served import Caller, application, caller_for


@pytest.fixture(params=["file", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: object) -> str:
    return acts.filled(f"{request.param}:{tmp_path}/store")


@pytest.fixture
def served(url: str) -> Iterator[tuple[Caller, Desk]]:
    with application(url) as (client, desk):
        yield caller_for(client, desk, "operator", name="ann"), desk


@pytest.fixture(params=["file", "sqlite"])
def shown(request: pytest.FixtureRequest, tmp_path: object) -> Iterator[tuple[TestClient, Desk]]:
    with application(reads.filled(f"{request.param}:{tmp_path}/store")) as (client, desk):
        yield client, desk


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Caller, Caller]]:
    with reads.looked_at(tmp_path_factory.mktemp("still")) as (client, desk):
        yield caller_for(client, desk, "viewer"), caller_for(client, desk, "read")
