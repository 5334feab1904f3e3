"""What happens in the store, as it happens."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from holdfast.domain.access import Scope
from holdfast.domain.ids import check_workflow_id
from holdfast.server.api.session import cookie_of
from holdfast.server.desk import Desk
from holdfast.server.live import READS, LiveEvent
from holdfast.server.operation import Answer, Asked, Operation
from holdfast.server.problems import Refusal

_MEDIA_TYPE = "text/event-stream"


class Listening(msgspec.Struct):
    """What to listen to."""

    #: Of this workflow only.
    run: str | None = None
    #: From this entry of the log on; Last-Event-ID goes first.
    after: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    #: Also that somebody looked at something; for whoever may read the trail.
    reads: bool = False
    #: The stream ends after so many; 0: when all that happened so far is told.
    seconds: Annotated[int, Meta(ge=0, le=86_400)] | None = None


def listen(desk: Desk, asked: Asked[Listening, None]) -> Answer:
    """Begin to tell what happens; who did it, and the facts, to whoever may read the trail."""
    query, may_read = asked.query, asked.identity.may(Scope.AUDIT_READ)
    if query.run is not None:
        check_workflow_id(query.run)
    if query.reads and not may_read:
        raise Refusal(403, "scope_missing", f"who looked at what needs the scope {Scope.AUDIT_READ}")
    desk.live.admit(asked.identity.name)
    longest = desk.settings.stream_seconds
    stream = desk.live.listen(
        asked.identity.name,
        desk.live.place(_after(asked)),
        partial(_is_wanted, query),
        partial(_is_known, desk, asked),
        with_facts=may_read,
        seconds=longest if query.seconds is None else min(query.seconds, longest),
    )
    headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
    return Answer(None, 200, headers, _MEDIA_TYPE, stream)


def _is_wanted(query: Listening, event: LiveEvent) -> bool:
    return query.run in (None, event.workflow_id) and (query.reads or event.type not in READS)


def _is_known(desk: Desk, asked: Asked[Listening, None]) -> bool:
    """Tell whether whoever listens would be let in again: a token may be revoked, a browser signed out."""
    try:
        desk.doorkeeper.identify(asked.headers, {desk.doorkeeper.cookie: cookie_of(desk, asked) or ""}, "GET")
    except Refusal:
        return False
    return True


def _after(asked: Asked[Listening, None]) -> int | None:
    last = asked.headers.get("last-event-id", "")
    if not last:
        return asked.query.after
    if not last.isdecimal() or len(last) > 15:
        raise Refusal(400, "invalid_request", "Last-Event-ID is the number of an entry", place=last[:40])
    return int(last) + 1


OPERATIONS = (
    Operation(
        "listen",
        "GET",
        "/events",
        Scope.READ,
        "Tell what happens in the store, as it happens.",
        listen,
        query=Listening,
        also=(_MEDIA_TYPE,),
        is_stream=True,
        tag="events",
    ),
)
