from __future__ import annotations

from holdfast import bootstrap
from holdfast.application.forks import Fork, forks


def test_forks_are_told_in_their_order_with_the_point_they_began_at():
    with bootstrap.open("memory:") as service:
        service.create_checkpoint("a@home", {"n": 1})
        service.fork_workflow("a@home@1", "b")
        service.fork_workflow("b@event:1", "c")
        found = list(forks(service._engine.kit.store))
    assert found == [Fork("b", "a@home", "a@home@1"), Fork("c", "b", "b@event:1")]


def test_a_fork_is_remembered_when_its_first_checkpoint_is_gone():
    with bootstrap.open("memory:") as service:
        service.create_checkpoint("a", {"n": 1})
        service.fork_workflow("a@1", "b")
        for number in range(5):
            service.create_checkpoint("b", {"n": number})
        service.prune_checkpoints("b", 2, 0)
        assert [fork.origin for fork in forks(service._engine.kit.store)] == ["a"]
