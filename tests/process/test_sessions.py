"""Sessions between processes: of two who take over one wins, and whoever is killed can be gone on with."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from holdfast.domain.session_record import SessionStatus
from tests.process.evidence import keep
from tests.process.passing import Passer
from tests.recovery.conftest import place as place
from tests.recovery.places import KINDS, Place
from tests.sizes import daily


def test_of_two_processes_that_resume_at_once_one_wins(place: Place, campaign: bool) -> None:
    rounds, won = (100 if campaign else 4), Counter[str]()
    with place.open(session="s") as service:
        for number in range(rounds):
            service.create_checkpoint(f"W-{number}", {"n": number})
            service.sessions.open_session(f"old-{number}", workflow_ids=[f"W-{number}"])
            service.sessions.hand_off(f"old-{number}")
    with Passer("take_over", place.url) as one, Passer("take_over", place.url) as other:
        for number in range(rounds):
            one.tell(f"old-{number} one-{number}")
            other.tell(f"old-{number} other-{number}")
            ends = {"one": one.hear(), "other": other.hear()}
            [winner] = [name for name, end in ends.items() if end == f"won {name}-{number}"]
            assert [*ends.values()].count("lost") == 1
            won[winner] += 1
    with place.open(session="s-2") as service:
        found = {old.id: old.continued_by for old in service.sessions.listing() if old.continued_by}
        assert len(found) == rounds
        assert {one.id for one in service.sessions.listing()} == {*found, *found.values()}
        assert service.audit.verify().fault_count == 0
    keep("sessions", f"two at once, {place.kind}", {"rounds": rounds, **won}, [])


#: After which line each store is told of is killed every day.
LINES = [("file", 1), ("sqlite", 2), ("postgres", 5), ("file", 6)]


@pytest.mark.parametrize(("place", "lines"), daily(product(KINDS, [1, 2, 5, 6]), LINES), indirect=["place"])
def test_a_process_that_is_killed_leaves_a_session_to_go_on_with(place: Place, lines: int) -> None:
    with Passer("pass_on", place.url) as child:
        child.tell("s")
        heard = [child.hear().split() for _ in range(lines)]
        child.kill()
    with place.open(session="after") as service:
        sessions = {one.id: one for one in service.sessions.listing()}
        for one in sessions.values():
            assert one.continued_by is None or sessions[one.continued_by].continues == one.id
        told = {name for word, name, _ in heard if word == "left"}
        assert all(sessions[name].status is not SessionStatus.OPEN for name in told)
        # The one that nobody goes on with; before the first hand-off that is one without a record.
        ends = [one.id for one in sessions.values() if one.continued_by is None] or ["s"]
        [last] = ends
        state = service.sessions.resume_session(last)
        assert state.state("W").context["n"] >= int(heard[-1][2])
        assert service.audit.verify().fault_count == 0
