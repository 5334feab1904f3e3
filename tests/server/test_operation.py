from __future__ import annotations

import pytest

from holdfast.domain.access import Scope
from holdfast.server.operation import Answer, Identity


@pytest.mark.parametrize(("scopes", "may"), [({Scope.READ}, False), ({Scope.STATE_READ}, True), ((), False)])
def test_an_identity_may_do_what_its_scopes_say(scopes, may):
    assert Identity("ann", frozenset(scopes)).may(Scope.STATE_READ) is may


def test_an_answer_is_json_and_a_success_unless_it_says_otherwise():
    answer = Answer({"n": 1})
    assert (answer.status, answer.media_type, answer.stream) == (200, "application/json", None)
