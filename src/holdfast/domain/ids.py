"""Names of workflows, sessions and checkpoints, and the folders they live in.

An id is never a path: `folder_name` is the only way from one to the other, and it is one-way.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

from holdfast.domain.errors import InvalidIdError
from holdfast.domain.ladder import Mode
from holdfast.domain.time import timestamp_text

#: What stands for the hash before the first.
GENESIS = "GENESIS"
MAX_ID_CHARS = 255
MIN_UUID_PREFIX_CHARS = 4

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SAFE_FOLDER = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_UNSAFE_RUN = re.compile(r"[^a-z0-9._-]+")
_SLUG_CHARS = 40
_FOLDER_HASH_CHARS = 16
#: Names that Windows gives to devices, whatever follows after a dot.
_RESERVED_STEMS = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{digit}" for port in ("com", "lpt") for digit in range(10))]
)

_FILE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*(?:/[a-z0-9][a-z0-9._-]*)*")
FILE_NAME_CHARS_MAX = 200

_COUNTED = re.compile(r"(?:latest|(?P<sequence>[0-9]{1,18}))(?:~(?P<back>[0-9]{1,18}))?")
_PHASE = re.compile(r"phase:(?P<phase>[0-9]{1,18})")
_STAGE = re.compile(r"stage:(?P<stage>.+)", re.DOTALL)
_EVENT = re.compile(r"event:(?P<event>[0-9]{1,18})")
_TIME = re.compile(r"time:(?P<time>.+)", re.DOTALL)
_CHECKPOINT_FILE = re.compile(r"(?:.*[/\\])?checkpoint_(?P<sequence>[0-9]{1,18})\.[a-z0-9.]+", re.DOTALL)
_HEX = re.compile(r"[0-9a-f]{4,32}")
_UUID_PARTS = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))


_SHOWN_CHARS = 15
_TIME_SHOWN_CHARS = 40


def check_file_name(name: str) -> str:
    """Answer the name of a file of the store itself, if it is one.

    Raises:
        InvalidIdError: if it could lead anywhere else.
    """
    if len(name) > FILE_NAME_CHARS_MAX or not _FILE_NAME.fullmatch(name):
        raise InvalidIdError("this is no name of a file of the store", place=ascii(name)[:80])
    return name


@dataclass(frozen=True, slots=True)
class CheckpointID:
    """Name one committed checkpoint."""

    workflow_id: str
    sequence: int
    timestamp: datetime
    checksum: str
    uuid: str = ""
    stage_id: str | None = None
    agent_id: str | None = None
    #: False in a receipt for what waits in memory and is lost if the process ends before it is written.
    durable: bool = field(default=True, compare=False)
    #: Where the ladder of degradation stood.
    mode: Mode = field(default=Mode.FULL, compare=False)

    def __str__(self) -> str:
        return f"{self.workflow_id}@{self.sequence}"


@dataclass(frozen=True, slots=True)
class CheckpointRef:
    """What a person wrote to mean a checkpoint; finding it is the service's task.

    Exactly one of these holds, looked at in this order:
        path: a checkpoint file; `sequence` is the number in its name, and the workflow is the one
            whose `folder_name` is the file's folder.
        sequence, phase, stage: that checkpoint of `workflow_id`, or the newest of that phase or stage.
        event, moment: no checkpoint but a point, which may lie between two: everything up to and
            including that event, or that moment.
        none of them: the newest checkpoint of `workflow_id`.
    `back` then counts that many checkpoints back. Where `uuid` is set the text may be a workflow id
    or the beginning of a checkpoint's UUID: a workflow that exists goes first.
    """

    workflow_id: str = ""
    sequence: int | None = None
    back: int = 0
    phase: int | None = None
    stage: str | None = None
    event: int | None = None
    moment: datetime | None = None
    #: Canonical lower-case UUID, whole or its beginning.
    uuid: str = ""
    path: str = ""
    #: Written without a selector: `WF`, not `WF@latest`.
    bare: bool = False

    @property
    def is_point(self) -> bool:
        """Tell whether this names a point in a workflow's journal and no checkpoint."""
        return self.event is not None or self.moment is not None

    def __str__(self) -> str:
        if self.path:
            return self.path
        if self.bare:
            return self.workflow_id
        return f"{self.workflow_id}@{self._selector()}"

    def _selector(self) -> str:
        if self.phase is not None:
            return f"phase:{self.phase}"
        if self.stage is not None:
            return f"stage:{self.stage}"
        if self.event is not None:
            return f"event:{self.event}"
        if self.moment is not None:
            return f"time:{timestamp_text(self.moment)}"
        counted = "latest" if self.sequence is None else str(self.sequence)
        return f"{counted}~{self.back}" if self.back else counted


def parse_ref(text: str) -> CheckpointRef:
    """Read a reference to a checkpoint, or to a point between two.

    Args:
        text: `WF@42`, `WF@latest`, `WF@42~2`, `WF@phase:2`, `WF@stage:NAME`, a UUID or at least four
            hex digits of its beginning, the path of a checkpoint file, or a workflow id (its newest);
            as a point `WF@event:123` or `WF@time:2026-01-11T14:30:00Z`.

    Raises:
        InvalidIdError: if the workflow id, the stage name or the time in it is none.
    """
    _check_text(text)
    in_file = _CHECKPOINT_FILE.fullmatch(text)
    if in_file:
        return CheckpointRef(path=text, sequence=int(in_file["sequence"]))
    # The id may contain "@", so the last one that a selector follows is the separator.
    at = text.rfind("@")
    while at >= 0:
        ref = _selected(text[:at], text[at + 1 :])
        if ref is not None:
            return ref
        at = text.rfind("@", 0, at)
    return CheckpointRef(check_workflow_id(text), uuid=_uuid_prefix(text), bare=True)


def _check_text(name: object) -> None:
    if not isinstance(name, str):
        kind = type(name).__name__
        raise InvalidIdError(f"a checkpoint is named by an id or a text, not by {kind}", place=_shown(name))


def _selected(workflow_id: str, selector: str) -> CheckpointRef | None:
    """Read what follows an "@", or answer None if that is no selector."""
    if counted := _COUNTED.fullmatch(selector):
        sequence, back = counted["sequence"], counted["back"] or "0"
        number = None if sequence is None else int(sequence)
        return CheckpointRef(check_workflow_id(workflow_id), sequence=number, back=int(back))
    if phase := _PHASE.fullmatch(selector):
        return CheckpointRef(check_workflow_id(workflow_id), phase=int(phase["phase"]))
    if stage := _STAGE.fullmatch(selector):
        return CheckpointRef(check_workflow_id(workflow_id), stage=check_id("stage", stage["stage"]))
    if event := _EVENT.fullmatch(selector):
        return CheckpointRef(check_workflow_id(workflow_id), event=int(event["event"]))
    if time := _TIME.fullmatch(selector):
        return CheckpointRef(check_workflow_id(workflow_id), moment=_moment(time["time"]))
    return None


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        if moment.utcoffset() is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise InvalidIdError(
        "this is no time, or one without its time zone",
        place=_shown(text, _TIME_SHOWN_CHARS),
        hint="Write it like 2026-01-11T14:30:00Z, or 2026-01-11T15:30:00+01:00.",
    )


def _uuid_prefix(text: str) -> str:
    """Spell the beginning of a UUID with its hyphens; empty if the text is none."""
    digits = text.lower().replace("-", "")
    if not _HEX.fullmatch(digits):
        return ""
    spelled = "-".join(digits[first:last] for first, last in _UUID_PARTS if digits[first:last])
    return spelled if text.lower() in (spelled, digits, spelled + "-") else ""


def check_id(kind: str, text: str) -> str:
    """Answer the text if it may be an id; `kind` (workflow, session, stage ...) is for the message.

    Raises:
        InvalidIdError: if it is empty, too long, surrounded by white space, "." or "..", or holds
            control characters, line separators or lone surrogates.
    """
    problem = _text_problem(text) if isinstance(text, str) else f"is a {type(text).__name__}, not a string"
    if problem:
        raise InvalidIdError(
            f"the {kind} id {problem}",
            place=_shown(text),
            hint=f"Use 1 to {MAX_ID_CHARS} printable characters.",
        )
    return text


def _shown(text: object, chars: int = _SHOWN_CHARS) -> str:
    """Quote enough of what is no id to know it by; given by mistake, it may be a secret."""
    if not isinstance(text, str):
        return ascii(text)[:chars]
    return ascii(text[:chars]) + ("..." if len(text) > chars else "")


@lru_cache(maxsize=4096)
def _text_problem(text: str) -> str:
    if not text:
        return "is empty"
    if len(text) > MAX_ID_CHARS:
        return f"has {len(text)} characters"
    if _UNPRINTABLE.search(text):
        return "contains a control character, a line separator or half of a surrogate pair"
    if text != text.strip():
        return "begins or ends with white space"
    return "would name a folder above" if text in (".", "..") else ""


def check_workflow_id(text: str) -> str:
    """Answer the text if it may be a workflow id, else raise InvalidIdError."""
    return check_id("workflow", text)


def check_session_id(text: str) -> str:
    """Answer the text if it may be a session id, else raise InvalidIdError."""
    return check_id("session", text)


def folder_name(id_text: str) -> str:
    """Name the folder of an id: the id itself where every file system takes it, else a slug and a hash.

    Names differ for different ids even where the file system ignores case or normalises Unicode.
    """
    if _SAFE_FOLDER.fullmatch(id_text) and not id_text.endswith(".") and not _is_device(id_text):
        return id_text
    # No plain id contains "~", so the two kinds of names never meet.
    return f"{_slug(id_text)}~{_sha256_hex(id_text)[:_FOLDER_HASH_CHARS]}"


def shard(id_text: str) -> str:
    """Name the folder above, so that no folder ever holds all workflows."""
    return _sha256_hex(id_text)[:2]


def _slug(id_text: str) -> str:
    slug = _UNSAFE_RUN.sub("-", id_text.lower())[:_SLUG_CHARS].strip("-._") or "id"
    # "con.txt~..." would still be the device to Windows, which stops reading at the dot.
    return slug.replace(".", "-") if _is_device(slug) else slug


def _is_device(name: str) -> bool:
    return name.partition(".")[0] in _RESERVED_STEMS


def _sha256_hex(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
