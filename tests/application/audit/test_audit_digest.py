from __future__ import annotations

from holdfast.application.audit.audit_digest import _TYPES, BARS, Topic, digest
from holdfast.application.audit.audit_event import PayloadState
from holdfast.domain.audit_type import AuditType, Outcome
from tests.application.told import Told, day_at_work, entry


def test_entries_are_counted_by_what_they_tell_of():
    told = digest(day_at_work().reported())
    assert told.entries == 11
    assert {topic: section.total for topic, section in told.topics.items()} == {
        Topic.DECISIONS: 1,
        Topic.APPROVALS: 2,
        Topic.TROUBLE: 1,
        Topic.RECOVERIES: 1,
        Topic.PRUNES: 1,
        Topic.ERASURES: 1,
        Topic.READS: 2,
        Topic.KEYS: 0,
    }
    assert told.clock_steps.total == 1
    assert told.payloads[PayloadState.OPENED] == 4
    assert told.sessions == {"s-1": 11} and told.workflows == {"WF-1": 10}
    assert (told.first[:16], told.last[:16]) == ("2026-01-11T14:31", "2026-01-11T14:39")


def test_what_failed_is_trouble_whatever_else_it_is():
    failed = Told().add(entry(1, AuditType.TRAIL_VERIFIED, outcome=Outcome.FAILURE))
    told = digest(failed.reported())
    assert told.topics[Topic.TROUBLE].total == told.topics[Topic.READS].total == 1


def test_types_of_the_application_are_in_the_timeline():
    told = digest(Told().add(entry(1, "LOAN_GRANTED")).reported())
    assert told.types["LOAN_GRANTED"] == 1 and told.timeline.total == 2


def test_only_the_first_are_kept_and_all_are_counted():
    many = Told().add(*(entry(number, payload={"description": str(number)}) for number in range(1, 40)))
    told = digest(many.reported(), shown_max=10)
    assert told.topics[Topic.DECISIONS].total == 39
    assert len(told.topics[Topic.DECISIONS].shown) == len(told.timeline.shown) == 10


def test_every_type_has_at_most_one_topic():
    kinds = [kind for kinds in _TYPES.values() for kind in kinds]
    assert len(kinds) == len(set(kinds))
    assert set(_TYPES) == set(Topic)


def test_bars_count_the_timeline():
    told = digest(day_at_work().reported())
    assert len(told.bars()) == BARS and sum(told.bars()) == 11
    assert digest([]).bars() == []
    assert sum(digest(Told().add(entry(1)).reported()).bars()) == 2
