"""What is known of a workflow by its listing and its last events; reading on gives what reading anew does."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.application.insight.run_facts import RunFacts, read_facts
from holdfast.application.kit import Kit
from holdfast.application.service import CheckpointService
from holdfast.domain import run_events
from holdfast.testing import FixedClock
from tests.application.services import make_kit


def facts(kit: Kit, known: RunFacts | None = None) -> RunFacts:
    return read_facts(kit, "W", kit.store.head("W"), known)


def deed(service: CheckpointService, what: str) -> None:
    """Do one of the things that change what is known."""
    event = service.append_event
    if what == "checkpoint":
        count = len(service.list_checkpoints("W", 1_000))
        service.create_checkpoint("W", {"n": count}, agent_id=f"agent-{count % 3}")
    elif what in ("running", "paused", "waiting", "failed"):
        event("W", run_events.RUN_UPDATED, {"fields": {"status": what}}, step_id="run")
    elif what == "ask":
        event("W", run_events.APPROVAL_REQUESTED, {"name": "go", "question": "?"}, step_id="a")
    elif what == "answer":
        event("W", run_events.APPROVAL_GRANTED, {"name": "go", "by": "ann"}, step_id="a")
    elif what == "fail":
        error = {"type": "ValueError", "message": "no ink"}
        event("W", run_events.AGENT_FAILED, {"error": error, "attempt": 1}, agent_id="a", step_id="a")
    elif what == "skip":
        event("W", run_events.AGENT_SKIPPED, {"reason": "not needed"}, agent_id="a", step_id="a")
    elif what == "end":
        event("W", "WORKFLOW_COMPLETED", {})
    elif what == "pin":
        service.pin("W@latest")
    elif what == "note":
        service.annotate("W@latest", labels=[f"label-{len(service.events('W')) % 3}"])
    elif what == "recover":
        service.recover_workflow("W")
    elif service.list_checkpoints("W", 5):
        service.prune_checkpoints("W", retain_count=2, retain_days=0)


DEEDS = [
    "checkpoint",
    "running",
    "paused",
    "waiting",
    "failed",
    "ask",
    "answer",
    "fail",
    "skip",
    "end",
    "prune",
    "pin",
    "note",
    "recover",
]


@given(st.lists(st.tuples(st.sampled_from(DEEDS), st.booleans()), max_size=25))
def test_reading_on_finds_what_reading_anew_finds(deeds: list[tuple[str, bool]]) -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {})
    known = facts(kit)
    for what, is_looked in deeds:
        deed(service, what)
        known = facts(kit, known) if is_looked else known
    known = facts(kit, known)
    assert known == facts(kit)
    assert known.checkpoints == len(service.list_checkpoints("W", 1_000))


def test_facts_tell_how_a_run_says_that_it_stands() -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {}, agent_id="plan")
    for what in ("running", "ask", "fail", "waiting"):
        deed(service, what)
    found = facts(kit)
    assert (found.told, found.error, found.open) == (
        "waiting",
        "a: ValueError: no ink",
        frozenset({("a", "go")}),
    )
    assert found.agents == {"plan", "a"}
    assert found.is_settled


def test_labels_that_were_given_later_are_known_until_they_are_taken_away() -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {"n": 1})
    service.create_checkpoint("W", {"n": 2})
    service.annotate("W@1", labels=["good", "kept"])
    service.annotate("W@2", labels=["bad"])
    known = facts(kit)
    assert known.labels == {"good", "kept", "bad"}
    service.annotate("W@1", labels=["kept"])
    assert facts(kit, known).labels == facts(kit).labels == {"kept", "bad"}
    service.delete("W@2")
    assert facts(kit, known).labels == facts(kit).labels == {"kept"}


def test_what_a_skipped_agent_asked_is_open_no_more() -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {}, agent_id="plan")
    for step in ("a", "a>b", "ab"):
        service.append_event("W", run_events.APPROVAL_REQUESTED, {"name": "go"}, step_id=step)
    deed(service, "skip")
    assert facts(kit).open == {("ab", "go")}


def test_an_end_that_is_followed_by_a_checkpoint_is_none() -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {})
    deed(service, "end")
    assert facts(kit).ended == "completed"
    deed(service, "checkpoint")
    assert facts(kit).ended == ""


def test_of_what_was_erased_nothing_is_remembered() -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {}, agent_id="Ada Lovelace")
    deed(service, "fail")
    known = facts(kit)
    service.erasure.workflow("W", reason="she asked for it")
    found = facts(kit, known)
    assert (found.agents, found.error, found.checkpoints, found.newest) == (frozenset(), "", 0, None)


def test_what_cannot_be_read_is_told_and_read_again() -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {})

    class Damaged:
        def __getattr__(self, name: str) -> Any:
            return getattr(kit.store, name)

        def events(self, workflow_id: str, *, after: int = 0) -> list[bytes]:
            return [b'{"seq":1,"ts":"yesterday","type":"X"}']

    damaged = replace(kit, store=Damaged())
    found = read_facts(damaged, "W", kit.store.head("W"))
    assert "is not a timestamp" in found.problem and not found.is_settled
    assert read_facts(kit, "W", kit.store.head("W"), found).problem == ""


def test_a_recovery_is_known_with_the_checkpoint_it_makes_and_no_further() -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    for number in range(2):
        service.create_checkpoint("W", {"n": number})
    service.quarantine.put("W", 2, "it looks odd")
    made = service.recover_workflow("W").checkpoint_made
    assert made is not None and facts(kit).recovery
    service.append_event("W", "SOMETHING", {})
    assert not facts(kit).recovery


def test_pinning_is_no_activity_of_a_workflow() -> None:
    clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))
    kit = make_kit(clock=clock)
    service = CheckpointService(kit)
    service.mark_completed(service.create_checkpoint("W", {}))
    before = facts(kit).last_at
    clock.advance(timedelta(hours=1))
    service.pin("W@1")
    service.unpin("W@1")
    assert facts(kit).last_at == before != ""
    service.append_event("W", "SOMETHING", {})
    assert facts(kit).last_at > before
