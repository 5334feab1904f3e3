from __future__ import annotations

from typing import Any

import pytest

import holdfast
from holdfast.application.insight import lineage as lineage_module
from holdfast.application.insight.lineage import Lineage
from holdfast.application.service import CheckpointService
from tests.application.services import make_kit
from tests.encrypted import OLD_KEY, encrypted_store
from tests.encrypted import service as encrypted_service


def forked(service: CheckpointService) -> Lineage:
    """Make a family of three generations, and a stranger."""
    service.create_checkpoint("old", {"a": 1})
    service.append_event("old", "X", {})
    service.fork_workflow("old@1", "child")
    service.fork_workflow("old@event:2", "other child")
    service.fork_workflow("child@1", "grandchild")
    service.create_checkpoint("stranger", {"says": "forked_from"})
    return Lineage(service._engine.kit)


@pytest.mark.parametrize("kind", ["memory", "file", "sqlite"])
def test_forks_know_where_they_come_from(kind: str, tmp_path: Any) -> None:
    with holdfast.open("memory:" if kind == "memory" else f"{kind}:{tmp_path}/s") as service:
        lineage = forked(service)
        origin = lineage.origin("child")
        assert origin is not None and (origin.workflow_id, origin.point, origin.sequence) == (
            "old",
            "old@1",
            1,
        )
        assert lineage.origin("stranger") is None and lineage.origin("nobody") is None
        assert [(fork.workflow_id, fork.point) for fork in lineage.forks("old")] == [
            ("child", "old@1"),
            ("other child", "old@event:2"),
        ]
        family = lineage.family("other child")
    assert set(family.members) == {"old", "child", "other child", "grandchild"}
    assert {(parent, fork.workflow_id) for parent, fork in family.forks} == {
        ("old", "child"),
        ("old", "other child"),
        ("child", "grandchild"),
    }
    assert not family.is_cut


def test_forks_of_an_encrypted_store_are_known_to_whoever_has_its_key() -> None:
    service = encrypted_service(encrypted_store(), OLD_KEY)
    lineage = forked(service)
    origin = lineage.origin("grandchild")
    assert origin is not None and origin.workflow_id == "child"


def test_what_is_new_is_learnt() -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    lineage = forked(service)
    assert len(lineage.forks("old")) == 2
    service.fork_workflow("old@1", "third")
    assert len(lineage.forks("old")) == 3


def test_only_so_many_are_looked_into_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage_module, "_LEARNT_AT_ONCE", 2)
    kit = make_kit()
    lineage = forked(CheckpointService(kit))
    assert lineage.family("old").is_cut
    lineage.family("old")
    assert not lineage.family("old").is_cut


def test_a_large_family_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage_module, "_FAMILY_MAX", 2)
    kit = make_kit()
    family = forked(CheckpointService(kit)).family("grandchild")
    assert family.is_cut and "grandchild" in family.members
