"""Whatever is asked in whatever order, with restarts and days going by: done once for a key, or refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.bootstrap import build_kit, open_store
from holdfast.config import Config
from holdfast.domain.access import ANSWERS, Scope
from holdfast.server.idempotency import KEPT, Ledger
from holdfast.server.operation import Answer, Asked, Identity, Operation
from holdfast.server.problems import Refusal


class Body(msgspec.Struct):
    """What is to be done."""

    what: int


class Clock:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 16, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment


OPERATION = Operation(
    "act", "POST", "/act", Scope.WRITE, "Act.", lambda desk, asked: None, body=Body, acts=True
)


class Killed(BaseException):
    """The server ends in the middle of the act."""


class OnceForAKey(RuleBasedStateMachine):
    """Compares the ledger with a dictionary."""

    @initialize()
    def begin(self) -> None:
        config = Config.load({"store": "memory:"})
        self.clock = Clock()
        self.kit = replace(build_kit(open_store(config), config), clock=self.clock)
        self.ledger = Ledger(self.kit)
        self.done: list[int] = []
        #: What was asked for, when, and the answer: a number, a refusal's status, or None if nobody knows.
        self.known: dict[tuple[str, str], tuple[int, datetime, int | None]] = {}

    def ask(self, who: str, key: str, what: int, act: Any) -> Any:
        asked = Asked({}, None, Body(what), Identity(who, frozenset()), "req-1", {"idempotency-key": key})
        return self.ledger.once(OPERATION, asked, act)

    def expected(self, who: str, key: str) -> tuple[int, datetime, int | None] | None:
        found = self.known.get((who, key))
        return found if found is not None and found[1] + KEPT > self.clock.moment else None

    @rule(
        who=st.sampled_from("ab"),
        key=st.sampled_from(["k", "l"]),
        what=st.integers(0, 2),
        ends=st.sampled_from(["well", "refused", "killed"]),
    )
    def act(self, who: str, key: str, what: int, ends: str) -> None:
        """Ask for something, which ends in one of three ways if it is begun."""
        known = self.expected(who, key)
        began = self.clock.moment

        def act() -> Any:
            self.done.append(what)
            if ends == "killed":
                raise Killed
            if ends == "refused":
                raise Refusal(418, "no", "not today")
            return len(self.done)

        try:
            answer: Any = self.ask(who, key, what, act)
            got: int | None = msgspec.json.decode(answer.body) if type(answer.body) is bytes else answer.body
            assert isinstance(answer, Answer)
        except Refusal as refusal:
            got = -refusal.status
        except Killed:
            got = None
        if known is None:
            wanted = {"well": len(self.done), "refused": -418, "killed": None}[ends]
            assert got == wanted
            self.known[who, key] = (what, began, got)
        elif known[0] != what:
            assert got == -422
        else:
            assert got == (-409 if known[2] is None else known[2])

    @rule()
    def restart(self) -> None:
        """Let another server go on with the store."""
        self.ledger = Ledger(self.kit)

    @rule(hours=st.sampled_from([1, 11, 23, 24, 49]))
    def wait(self, hours: int) -> None:
        """Let time go by."""
        self.clock.moment += timedelta(hours=hours)

    @precondition(lambda self: hasattr(self, "kit"))
    @invariant()
    def only_a_few_are_kept(self) -> None:
        """See to it that what is old is swept, sooner or later."""
        assert len(list(self.kit.store.files(ANSWERS))) <= 12


OnceForAKey.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
TestOnceForAKey = OnceForAKey.TestCase
