"""Things that are done once, however often they are asked for: `Idempotency-Key`.

A key belongs to whoever sends it. Before anything is done a small file of the store says that the key is
taken; afterwards the same file keeps the answer, which is given again for a day, also by another server of
the store. A server that is killed in between leaves a key that was taken and has no answer: nobody knows
whether the thing was done, so it is never done again under that key.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from holdfast.application.kit import Kit
from holdfast.application.recovery.owners import is_dead, own_name
from holdfast.domain.access import ANSWERS, NOT_KEPT
from holdfast.domain.errors import CheckpointConflictError, CheckpointError
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.server.operation import JSON, Answer, Asked, Operation
from holdfast.server.problems import Detail, Refusal, encode

HEADER = "idempotency-key"
KEPT = timedelta(hours=24)
#: Tells that this was answered before.
AGAIN: Mapping[str, str] = {"Idempotency-Replayed": "true"}
_KEY = re.compile(r"[!-~]{1,255}")
#: A text in JSON, and the colon behind it where it is the name of a member.
_TEXT = re.compile(rb'("(?:[^"\\]++|\\.)*+")(\s*+:)?')
#: A store takes small files only.
_ANSWER_BYTES_MAX = 200 * 1024
_SWEPT_AT_ONCE = 200
_LOG = logging.getLogger("holdfast")


@dataclass(frozen=True, slots=True)
class ShownOnce(Answer):
    """An answer that holds a secret: another is kept and given again."""

    kept: Any = None


class Told(msgspec.Struct, frozen=True):
    """An answer, or a refusal, as it is kept."""

    status: int
    headers: dict[str, str] = {}
    body: msgspec.Raw = msgspec.Raw(b"null")
    #: Only of a refusal; "" else.
    code: str = ""
    detail: str = ""
    hint: str = ""
    place: str = ""
    errors: list[Detail] = []
    candidates: list[str] = []


class Kept(msgspec.Struct, frozen=True):
    """What a store keeps of a key: what it was used for, by whom, and the answer once there is one."""

    #: Of what was asked for, made with the key: whoever reads the file cannot try reasons out.
    digest: str
    at: datetime
    #: The process that took the key.
    owner: str
    request_id: str
    answer: Told | None = None


@dataclass(slots=True)
class _Key:
    """A key that somebody sent, and what for."""

    digest: str
    #: Names of the files that may hold it: that of today, then that of yesterday.
    files: tuple[str, ...]
    request_id: str
    taken: bytes | None = field(default=None)


class Ledger:
    """Sees to it that what is asked for under one key is done once."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._owner = own_name(f"serve-{secrets.token_hex(4)}")
        self._mutex = threading.Lock()
        self._at_work: set[str] = set()
        self._swept: str = ""

    def once(self, operation: Operation, asked: Asked[Any, Any], act: Callable[[], Any]) -> Answer:
        """Do something, or answer what was answered when it was done.

        Args:
            operation: what is asked for.
            asked: by whom, with which key and body.
            act: does it; raises no error but Refusal.

        Raises:
            Refusal: there is no key, or it was used for something else, or the first is not done yet.
            CheckpointError: the key cannot be kept: nothing was done.
        """
        key = self._key(operation, asked)
        with self._alone(key.files[0]):
            before = self._find(key)
            if before is not None:
                return self._again(before, key)
            self._take(key)
            try:
                answer = act()
            except Refusal as refusal:
                self._keep(key, _refused(refusal))
                raise
            answer = answer if isinstance(answer, Answer) else Answer(answer, operation.status)
            self._keep(key, _answered(answer))
        return answer

    def _key(self, operation: Operation, asked: Asked[Any, Any]) -> _Key:
        text = asked.headers.get(HEADER, "")
        if not _KEY.fullmatch(text):
            raise Refusal(
                400,
                "idempotency_key_missing" if not text else "idempotency_key_invalid",
                "what changes something needs an Idempotency-Key of 1 to 255 printable characters",
                hint="Send a new random one for each thing to do, and the same one to ask again.",
                errors=[Detail("it is missing, or cannot be one", "Idempotency-Key")],
            )
        named = hashlib.sha256(ascii((asked.identity.name, text)).encode()).hexdigest()[:40]
        return _Key(_digest(text, operation, asked), self._files(named), asked.request_id)

    def _files(self, named: str) -> tuple[str, ...]:
        now = self._kit.clock.now()
        return tuple(f"{ANSWERS}{_day(moment)}/{named}.json" for moment in (now, now - KEPT))

    @contextmanager
    def _alone(self, file: str) -> Iterator[None]:
        """Keep a key to one request of this server."""
        name = file.rpartition("/")[2]
        with self._mutex:
            if name in self._at_work:
                raise _in_flight()
            self._at_work.add(name)
        try:
            yield
        finally:
            with self._mutex:
                self._at_work.discard(name)

    def _find(self, key: _Key) -> Kept | None:
        """Answer what is kept of a key, if that is not too old."""
        for file in key.files:
            data = self._kit.store.file(file)
            kept = None if data is None else self._read(file, data)
            if kept is not None and kept.at + KEPT > self._kit.clock.now():
                return kept
        return None

    def _read(self, file: str, data: bytes) -> Kept:
        vault = self._kit.vault
        try:
            return msgspec.json.decode(data if vault is None else vault.open_file(file, data), type=Kept)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise _unknown("what is kept of the key cannot be read") from None

    def _again(self, kept: Kept, key: _Key) -> Answer:
        if not hmac.compare_digest(kept.digest, key.digest):
            raise Refusal(
                422,
                "idempotency_key_reused",
                "the key was used for something else",
                hint="A key belongs to one thing to do: send another.",
                errors=[Detail("it was used before", "Idempotency-Key")],
            )
        if kept.answer is not None:
            return _given(kept.answer)
        if kept.owner != self._owner and not is_dead(kept.owner):
            # Another server of the store has it, or had it and died where nobody here can see that.
            raise _in_flight(kept.request_id)
        raise _unknown("whoever took the key ended before the answer was kept", kept.request_id)

    def _take(self, key: _Key) -> None:
        """Say durably that a key is taken; of two servers one wins."""
        self._sweep()
        key.taken = self._written(key, None)
        try:
            self._commit({key.files[0]: key.taken}, {key.files[0]: None})
        except CheckpointConflictError:
            raise _in_flight() from None

    def _keep(self, key: _Key, answer: Told) -> None:
        """Keep an answer; it is given all the same where that fails, and not given again."""
        try:
            self._commit({key.files[0]: self._written(key, answer)}, {key.files[0]: key.taken})
        except CheckpointError as problem:
            _LOG.warning("the answer to %s is not kept: %s", key.request_id, problem)

    def _written(self, key: _Key, answer: Told | None) -> bytes:
        request_id, vault = self._hide(key.request_id), self._kit.vault
        hidden = None if answer is None else _without_secrets(answer, self._hide)
        kept = Kept(key.digest, self._kit.clock.now(), self._owner, request_id, hidden)
        data = encode(kept)
        if len(data) > _ANSWER_BYTES_MAX and answer is not None:
            data = encode(msgspec.structs.replace(kept, answer=_too_long(answer)))
        return data if vault is None else vault.seal_file(key.files[0], data)

    def _hide(self, text: str) -> str:
        """Hide the secrets of a text, as they are hidden in the trail."""
        redactor = self._kit.redactor
        return text if redactor is None else redactor.text(text)

    def _commit(self, files: dict[str, bytes | None], expected: dict[str, bytes | None]) -> None:
        commit = Commit(NO_WORKFLOW, Head(), files=files, expected_files=expected)
        [outcome] = self._kit.store.commit([commit])
        if outcome is not None:
            raise outcome

    def _sweep(self) -> None:
        """Remove, once a day, what nobody can ask for again."""
        now = self._kit.clock.now()
        today, yesterday = _day(now), _day(now - KEPT)
        if self._swept == today:
            return
        self._swept = today
        old = [name for name in self._kit.store.files(ANSWERS) if name < f"{ANSWERS}{yesterday}"]
        for first in range(0, len(old), _SWEPT_AT_ONCE):
            self._commit(dict.fromkeys(old[first : first + _SWEPT_AT_ONCE]), {})


def _day(moment: datetime) -> str:
    return moment.strftime("%Y%m%d")


def _digest(key: str, operation: Operation, asked: Asked[Any, Any]) -> str:
    """Sum up what is asked for; how the JSON was laid out makes no difference."""
    path = ascii(sorted(asked.path.items()))
    parts = (operation.name, path, asked.headers.get("if-match", ""), encode((asked.query, asked.body)))
    return hmac.new(key.encode(), ascii(parts).encode(), hashlib.sha256).hexdigest()


def _answered(answer: Answer) -> Told:
    body = answer.kept if isinstance(answer, ShownOnce) else answer.body
    return Told(answer.status, dict(answer.headers), msgspec.Raw(encode(body)))


def _refused(refusal: Refusal) -> Told:
    return Told(
        refusal.status,
        dict(refusal.headers),
        code=refusal.code,
        detail=refusal.detail,
        hint=refusal.hint,
        place=refusal.place,
        errors=refusal.errors,
        candidates=refusal.candidates,
    )


def _without_secrets(told: Told, hide: Callable[[str], str]) -> Told:
    """Hide the secrets in the texts of an answer: whoever asked may have sent some, and files are kept."""
    return msgspec.structs.replace(
        told,
        body=msgspec.Raw(_with_texts_hidden(bytes(told.body), hide)),
        detail=hide(told.detail),
        hint=hide(told.hint),
        place=hide(told.place),
        errors=[Detail(hide(one.message), hide(one.place)) for one in told.errors],
        candidates=[hide(one) for one in told.candidates],
    )


def _with_texts_hidden(data: bytes, hide: Callable[[str], str]) -> bytes:
    """Hide the secrets in the texts of JSON; names, numbers and how it is laid out stay, however deep."""

    def hidden(found: re.Match[bytes]) -> bytes:
        if found[2]:
            return found[0]
        text = msgspec.json.decode(found[1], type=str)
        shown = hide(text)
        return found[0] if shown == text else encode(shown)

    return _TEXT.sub(hidden, data)


def _too_long(answer: Told) -> Told:
    """Keep that it was done where the answer is too long to be kept."""
    return Told(
        409,
        code=NOT_KEPT,
        detail=f"it was done, and answered {answer.status}; the answer was too long to be kept",
    )


def _given(told: Told) -> Answer:
    """Give an answer again."""
    if told.code:
        raise Refusal(
            told.status,
            told.code,
            told.detail,
            hint=told.hint,
            place=told.place,
            errors=told.errors,
            candidates=told.candidates,
            headers={**told.headers, **AGAIN},
        )
    return Answer(bytes(told.body), told.status, {**told.headers, **AGAIN}, JSON)


def _in_flight(request_id: str = "") -> Refusal:
    return Refusal(
        409,
        "idempotency_key_in_flight",
        "what was asked for under this key is being done",
        place=request_id,
        hint="Ask again with the same key in a moment.",
        headers={"Retry-After": "1"},
    )


def _unknown(why: str, request_id: str = "") -> Refusal:
    return Refusal(
        409,
        "outcome_unknown",
        f"nobody knows whether it was done: {why}",
        place=request_id,
        hint="Look at the trail for the request's id, and send a new key if it is still to be done.",
    )
