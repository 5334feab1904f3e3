import re

import pytest

from holdfast.domain.audit_type import AuditType, Outcome

#: Names that the documents give.
NAMED = [
    "SESSION_STARTED",
    "SESSION_CLOSED",
    "CHECKPOINT_CREATED",
    "STATE_RESTORED",
    "AGENT_DECISION",
    "WORKFLOW_STARTED",
    "AGENT_SPAWNED",
    "TASK_ASSIGNED",
    "TASK_COMPLETED",
]


@pytest.mark.parametrize("name", NAMED)
def test_the_names_of_the_documents_are_there(name):
    assert AuditType(name) == name


@pytest.mark.parametrize("kind", AuditType)
def test_a_type_is_written_as_it_is_named(kind):
    assert kind.name == kind.value
    assert re.fullmatch(r"[A-Z][A-Z_]{0,63}", kind)


def test_an_operation_may_end_in_four_ways():
    assert [*Outcome] == ["success", "failure", "refused", "unknown"]
