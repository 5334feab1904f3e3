"""The whole store at a glance: how many workflows stand how, what is at work, and what needs somebody."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from holdfast.application.insight.event_story import words
from holdfast.application.insight.run_facts import RunFacts
from holdfast.application.insight.runs import RunBook, RunRow, RunState
from holdfast.application.kit import Kit
from holdfast.application.quarantine_files import reports
from holdfast.domain.errors import CheckpointError
from holdfast.domain.time import timestamp_text

#: So many of each kind: a hundred that crashed do not hide the one that waits.
NEEDS_MAX = 50
LIVE_MAX = 200


class NeedKind(StrEnum):
    """Why somebody is needed."""

    CRASHED = "crashed"
    UNREADABLE = "unreadable"
    FAILED = "failed"
    #: Recovered, and not resumed.
    RECOVERED = "recovered"
    WAITING = "waiting"
    QUARANTINED = "quarantined"
    UNANCHORED = "unanchored"


class NeedAction(StrEnum):
    """What can be done about it."""

    RECOVER = "recover"
    APPROVE = "approve"
    QUARANTINE = "quarantine"
    RESUME = "resume"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Need:
    """Something that waits for somebody.

    Attributes:
        checkpoint: which one it is about, if any.
        since: from when on.
        command: what does the same in a shell.
        owner: who has the workflow, or had it when it crashed.
    """

    kind: NeedKind
    workflow_id: str | None
    checkpoint: str | None
    since: str
    reason: str
    action: NeedAction
    command: str
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """A store at a glance: `needs` with what is most urgent first, `live` newest first.

    Attributes:
        is_complete: whether every workflow was looked at by now; of very many that takes several requests.
    """

    store: str
    is_read_only: bool
    now: str
    counts: dict[str, int]
    needs: list[Need]
    live: list[RunRow]
    is_complete: bool


_OF_STATE = {
    RunState.CRASHED: (NeedKind.CRASHED, NeedAction.RECOVER, "recover"),
    RunState.UNREADABLE: (NeedKind.UNREADABLE, NeedAction.NONE, "doctor"),
    RunState.FAILED: (NeedKind.FAILED, NeedAction.RESUME, "resume"),
    RunState.WAITING: (NeedKind.WAITING, NeedAction.APPROVE, "approve --list"),
}


def overview(kit: Kit, book: RunBook) -> Overview:
    """Look at the whole store."""
    swept = book.swept()
    known = swept.rows
    rows = [row for row, _ in known]
    counts = Counter(str(row.status) for row in rows)
    store = kit.store.url
    needs = [*(need for row, facts in known if (need := _need(store, row, facts)) is not None)]
    needs += _set_aside(kit)
    by_kind = {kind: [need for need in needs if need.kind is kind][:NEEDS_MAX] for kind in NeedKind}
    return Overview(
        kit.store.url,
        kit.store.read_only,
        timestamp_text(kit.clock.now()),
        {str(state): counts[state] for state in RunState},
        [need for kind in NeedKind for need in by_kind[kind]],
        [row for row in rows if row.is_live][:LIVE_MAX],
        swept.is_complete,
    )


def _need(store: str, row: RunRow, facts: RunFacts) -> Need | None:
    """Answer what a workflow needs; one that was cancelled needs nothing."""
    if row.is_recovered:
        kind, action, verb = NeedKind.RECOVERED, NeedAction.RESUME, "resume"
    elif row.status not in _OF_STATE:
        return None
    else:
        kind, action, verb = _OF_STATE[row.status]
    if action is NeedAction.RESUME and not facts.told:
        # No run of ours says how it stands: there is no plan to go on with.
        is_recovered = kind is NeedKind.RECOVERED
        action, verb = (NeedAction.NONE, "show") if is_recovered else (NeedAction.RECOVER, "recover")
    checkpoint = row.newest.id if row.newest else None
    # What is damaged is found by a look at the whole store.
    names = () if kind is NeedKind.UNREADABLE else (row.workflow_id,)
    command = _command(store, verb, *names)
    return Need(kind, row.workflow_id, checkpoint, row.last_activity, row.reason, action, command, row.owner)


def _set_aside(kit: Kit) -> Iterator[Need]:
    """Tell what lies in quarantine and was not released."""
    try:
        found = reports(kit.store)
    except CheckpointError as damage:
        reason = f"the reports cannot be read: {words(damage.message)}"
        yield _quarantined(None, None, "", reason, _command(kit.store.url, "quarantine list"))
        return
    for one in found:
        if one.released is None:
            checkpoint = one.place if one.sequence is not None else None
            command = _command(kit.store.url, "quarantine show", one.name)
            yield _quarantined(one.workflow_id, checkpoint, one.found_at, words(one.reason), command)


def _quarantined(
    workflow_id: str | None, checkpoint: str | None, since: str, reason: str, command: str
) -> Need:
    return Need(
        NeedKind.QUARANTINED,
        workflow_id,
        checkpoint,
        since,
        reason,
        NeedAction.QUARANTINE,
        command,
    )


def _command(store: str, verb: str, *names: str) -> str:
    """Write what does the same in a shell; a name with a hyphen first is not taken for an option."""
    separator = ["--"] if any(name.startswith("-") for name in names) else []
    return f"holdfast {verb} {shlex.join([f'--store={store}', *separator, *names])}"
