"""A fork says in its first checkpoint where it comes from, as long as that can be read."""

from __future__ import annotations

import pytest

from holdfast import bootstrap
from holdfast.application.origins import Origin, origin_of


@pytest.mark.parametrize("settings", [{}, {"encrypt": True, "encryption_key": "env:ORIGINS_KEY"}])
def test_the_origin_of_a_fork_is_read(settings, monkeypatch):
    monkeypatch.setenv("ORIGINS_KEY", "ab" * 32)
    with bootstrap.open("memory:", **settings) as service:
        service.create_checkpoint("a", {"n": 1})
        service.append_event("a", "STEP", {})
        service.fork_workflow("a@1", "b")
        service.fork_workflow("a@event:2", "c")
        kit = service._engine.kit
        assert origin_of(kit, "b") == Origin("a", "a@1", 1)
        assert origin_of(kit, "c") == Origin("a", "a@event:2", 1)
        assert origin_of(kit, "a") is None and origin_of(kit, "none") is None


def test_what_was_pruned_or_erased_tells_nothing():
    with bootstrap.open("memory:") as service:
        service.create_checkpoint("a", {"n": 1})
        service.fork_workflow("a@1", "b")
        service.erasure.workflow("b", reason="asked for")
        assert origin_of(service._engine.kit, "b") is None
