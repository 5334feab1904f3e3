from __future__ import annotations

from pathlib import Path

import pytest

import holdfast
from holdfast import CheckpointService
from holdfast.application.insight.runs import RunBook
from holdfast.application.insight.search import Hit, search
from holdfast.domain.errors import AgentFailedError
from tests.application.insight.test_runs import failing


@pytest.fixture(params=["memory", "file", "sqlite"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointService:
    opened = holdfast.open("memory:" if request.param == "memory" else f"{request.param}:{tmp_path}/s")
    request.addfinalizer(opened.close)
    opened.create_checkpoint("Order/1", {"a": 1}, agent_id="planner")
    opened.create_checkpoint("Order/1", {"a": 2})
    opened.create_checkpoint("my order", {"a": 1}, agent_id="Planner two")
    with pytest.raises(AgentFailedError):
        failing().run_sync(opened, "broken")
    return opened


def found(service: CheckpointService, text: str, limit: int = 20, *, with_trail: bool = False) -> list[Hit]:
    kit = service._engine.kit
    return search(kit, RunBook(kit), text, limit, with_trail=with_trail)


def test_workflows_are_found_by_any_part_of_their_names(service: CheckpointService) -> None:
    assert [(hit.kind, hit.id, hit.rank) for hit in found(service, "ORDER")] == [
        ("run", "Order/1", 1),
        ("run", "my order", 2),
    ]
    [hit] = found(service, " order/1 ")
    assert (hit.id, hit.rank, hit.href) == ("Order/1", 0, "/v1/runs/Order%2F1")
    assert found(service, "  ") == [] and found(service, "nothing like it") == []
    assert len(found(service, "ORDER", limit=1)) == 1


def test_checkpoints_are_found_by_name_uuid_and_checksum(service: CheckpointService) -> None:
    entry = next(iter(service._engine.kit.store.entries("Order/1")))
    for text in ("Order/1@1", entry.uuid, entry.uuid[:8], entry.checksum, entry.checksum[7:19]):
        [hit] = [hit for hit in found(service, text) if hit.kind == "checkpoint"]
        assert (hit.id, hit.href) == ("Order/1@1", "/v1/checkpoints/Order%2F1@1")
    [hit] = found(service, "Order/1@latest")
    assert hit.id == "Order/1@2"
    assert found(service, "Order/1@99") == [] and found(service, "@event:1") == []


def test_labels_are_found_that_checkpoints_were_given(service: CheckpointService) -> None:
    service.annotate("Order/1@2", labels=["golden"])
    service.annotate("my order@1", labels=["golden", "old"])
    [hit] = found(service, "golden")
    assert (hit.kind, hit.id, hit.detail) == ("label", "golden", "in 2 workflows")


def test_agents_and_errors_are_found(service: CheckpointService) -> None:
    assert [(hit.kind, hit.id) for hit in found(service, "planner")] == [
        ("agent", "planner"),
        ("agent", "Planner two"),
    ]
    assert found(service, "planner")[1].href == "/v1/runs?agent=Planner%20two"
    [hit] = found(service, "no ink")
    assert (hit.kind, hit.id) == ("error", "broken") and "no ink" in hit.title


def test_entries_of_the_trail_are_found_by_whoever_may_read_it(service: CheckpointService) -> None:
    entry = service.audit.query_events(limit=1)[0]
    [hit] = found(service, entry.id, with_trail=True)
    assert (hit.kind, hit.title, hit.rank) == ("trail", entry.id, 0)
    assert hit.href == f"/v1/audit/entries/{hit.id}"
    assert found(service, entry.id) == []
    assert found(service, 'x"yzxyzxyz', with_trail=True) == []
