"""The effect ledger: changes to the outside world that happen once, or of which somebody is asked.

An effect is recorded as started before it is tried and as done after. What was started and is not done when
its agent runs again is unknown: it may have happened, or not. Its policy says what follows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from holdfast.application.recovery.statuses import shortened
from holdfast.domain.errors import CheckpointWriteError, EffectUnknownError
from holdfast.domain.run_events import EFFECT_DONE, EFFECT_STARTED
from holdfast.execution.approvals import Approval, Question
from holdfast.execution.driving import Asking, Call, Note
from holdfast.execution.faults import shown
from holdfast.execution.given import check_given
from holdfast.execution.journal import LOST, Care, Fact

#: Errors that leave open whether the other side did what it was asked to.
UNSURE = (TimeoutError, ConnectionError)
_SHOWN_CHARS = 300


class Unknown(StrEnum):
    """What follows when nobody knows whether an effect happened."""

    #: Ask a person, as an approval is asked for: done, retry or skip.
    ASK = "ask"
    #: Do it again with the same key: right where the other side knows the key.
    RETRY = "retry"
    #: Leave it, and go on without a result.
    SKIP = "skip"
    #: Ask the outside with the function given as `check`.
    CHECK = "check"
    #: End the run, and let somebody look.
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Found:
    """What a check answers when it found that the effect happened."""

    result: Any = None


@dataclass(frozen=True, slots=True)
class Effect:
    """One change outside: its name in the ledger, what does it, and what follows if nobody knows."""

    workflow_id: str
    step_id: str
    agent: str
    name: str
    call: Callable[..., Any]
    arguments: tuple[Any, ...]
    unknown: Unknown
    check: Callable[[str], Any] | None
    unsure: tuple[type[BaseException], ...] = UNSURE
    #: Tells its arguments from others; None where it is known by a key of its own.
    given: str | None = None
    #: The idempotency key that the other side was told before; None while it was told none.
    told_key: str | None = None
    #: Hides the secrets of a text, and cuts it.
    hidden: Callable[[str, int], str] = shortened

    @property
    def key(self) -> str:
        """The idempotency key: the same for each attempt of this step, and for nothing else."""
        if self.told_key is not None:
            return self.told_key
        told = "\n".join((self.workflow_id, self.step_id, self.name))
        return "hf-" + hashlib.sha256(told.encode()).hexdigest()[:40]


def perform(
    effect: Effect, state: Callable[[], Mapping[str, Any]], ask: Callable[[Question], Asking]
) -> Asking:
    """Do an effect unless it was done, and record both ends of it.

    Args:
        effect: what is done.
        state: tells what is known of its step as of now: an attempt that was given up may come to its end.
        ask: asks a person.
    """
    known = _known(effect, state)
    if known is not None and known["status"] != "failed":
        check_given(
            f"the effect {effect.name!r}", known, effect.given, f"{effect.workflow_id} {effect.step_id}"
        )
    if known is not None and known["status"] in ("done", "skipped"):
        return known.get("result")
    effect = _as_begun(effect, known)
    starts = known.get("starts", 1) if known is not None else 0
    if known is not None and known["status"] == "started":
        settled = yield from _settle(effect, starts, ask)
        if settled is not None:
            return settled.result
        known = _known(effect, state)
        if known is not None and known["status"] == "done":
            # It came to its end while somebody was asked.
            return known.get("result")
    yield from _start(effect, starts + 1)
    try:
        result = yield Call(effect.call, (effect.key, *effect.arguments))
    except Exception as fault:
        # Another attempt may have begun it since, and this answer is not that one's.
        is_newest = (_known(effect, state) or {}).get("starts") == starts + 1
        if is_newest and not isinstance(fault, effect.unsure):
            # The other side refused: that is an answer, and the next attempt may ask again.
            told = {**_told(effect), "status": "failed", "error": _shown(effect, fault)}
            yield Fact(EFFECT_DONE, told, effect.step_id, effect.agent)
        raise
    yield Fact(EFFECT_DONE, {**_told(effect), "result": result}, effect.step_id, effect.agent)
    return result


def _known(effect: Effect, state: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any] | None:
    effects: Mapping[str, Mapping[str, Any]] = state().get("effects", {})
    return effects.get(effect.name)


def _as_begun(effect: Effect, known: Mapping[str, Any] | None) -> Effect:
    """Let an effect that was begun keep its key: in a fork, another one would be derived from the new id."""
    if known is None or (known["status"] == "failed" and known.get("given") != effect.given):
        # What was refused is over, and this asks for something else.
        return effect
    told_key = known.get("key")
    return replace(effect, told_key=told_key) if isinstance(told_key, str) else effect


def _start(effect: Effect, starts: int) -> Asking:
    """Record that an effect is about to be tried; without that on disk it is not."""
    told = {**_told(effect), "starts": starts}
    if effect.given is not None:
        told["given"] = effect.given
    try:
        yield Fact(EFFECT_STARTED, told, effect.step_id, effect.agent, Care.DURABLE)
    except LOST:
        raise
    except CheckpointWriteError as problem:
        # It may reach the disk later all the same: whoever reads it shall know that nothing was tried.
        failed = {**_told(effect), "status": "failed", "error": _shown(effect, problem)}
        yield Note(Fact(EFFECT_DONE, failed, effect.step_id, effect.agent))
        raise CheckpointWriteError(
            f"the effect {effect.name!r} was not tried: that it starts is not durable ({problem.message})",
            place=f"{effect.workflow_id} {effect.step_id}",
            hint="Mend the store and run it again: a process that died meanwhile would have done it twice.",
        ) from problem


def _settle(effect: Effect, starts: int, ask: Callable[[Question], Asking]) -> Asking:
    """Find out what became of an effect that was started; None: do it (again)."""
    if effect.unknown is Unknown.RETRY:
        return None
    if effect.unknown is Unknown.CHECK and effect.check is not None:
        found = yield Call(effect.check, (effect.key,))
        return (yield from _ended(effect, "done", found)) if isinstance(found, Found) else None
    if effect.unknown is Unknown.SKIP:
        return (yield from _ended(effect, "skipped", Found()))
    if effect.unknown is Unknown.FAIL:
        raise EffectUnknownError(
            f"the effect {effect.name!r} was started before a crash, and may have happened",
            place=f"{effect.workflow_id} {effect.step_id}",
            hint="Look at the other side for the key "
            f"{effect.key}, and run again with unknown='retry', 'skip' or 'check'.",
        )
    return (yield from _asked(effect, starts, ask))


def _asked(effect: Effect, starts: int, ask: Callable[[Question], Asking]) -> Asking:
    # Each time it is unknown anew is a question of its own: who allowed one more try allowed no third.
    again = "" if starts == 1 else f":{starts}"
    question = Question(
        f"effect:{effect.name}{again}",
        f"The effect {effect.name!r} was started before a crash and may have happened "
        f"(key {effect.key}). Grant to have it done again, deny to go on as if it were done.",
        data={"effect": effect.name, "key": effect.key},
    )
    answer: Approval = yield from ask(question)
    if answer.granted:
        return None
    return (yield from _ended(effect, "done", Found(answer.value)))


def _ended(effect: Effect, status: str, found: Found) -> Asking:
    told = {**_told(effect), "status": status, "result": found.result, "settled_by": str(effect.unknown)}
    yield Fact(EFFECT_DONE, told, effect.step_id, effect.agent)
    return found


def _told(effect: Effect) -> dict[str, Any]:
    return {"name": effect.name, "key": effect.key}


def _shown(effect: Effect, fault: BaseException) -> str:
    return effect.hidden(shown(fault), _SHOWN_CHARS)
