"""Names: in a framework anything may be a name, a workflow may not be called just anything.

What a store calls a workflow begins with a room, such as `langgraph/` or `conversation:`, and goes on with
the names that the framework has for it, escaped as in a URL, with a slash between two of them.
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import unquote

from holdfast.domain.ids import MAX_ID_CHARS

#: What may not be in an id, or parts names (`/`), selects (`@`), marks a hash (`~`) or an escape (`%`).
_ESCAPED = re.compile("[/@~%\\s\x00-\x1f\x7f-\x9f\ud800-\udfff]|\\A\\.\\.?\\Z")
#: Of each name but the last, so that two of them leave room for a third.
_PART_CHARS_MAX = 80


def workflow_name(room: str, *names: str) -> str:
    """Name the workflow of one, two or three names of a framework, which no others share.

    A name that is too long is cut, and ends with a tilde and its hash: the state has to tell the true one.
    """
    beginning = names_begin(room, *names[:-1])
    return beginning + _part(names[-1], MAX_ID_CHARS - len(beginning))


def names_begin(room: str, *names: str) -> str:
    """Answer how the names of all workflows begin whose first names are these."""
    return room + "".join(f"{_part(name, _PART_CHARS_MAX)}/" for name in names)


def names_in(room: str, workflow_id: str) -> tuple[str, ...] | None:
    """Answer what a workflow was named by; None if it is of another room, or a name was too long."""
    parts = workflow_id.removeprefix(room).split("/")
    try:
        names = tuple(unquote(part, errors="surrogatepass") for part in parts)
    except UnicodeDecodeError:
        return None
    return names if workflow_name(room, *names) == workflow_id else None


def stage_name(name: str) -> str:
    """Name a stage after a step, a component or a checkpoint of a framework."""
    return workflow_name("", name)


def _part(name: str, chars_max: int) -> str:
    escaped = _ESCAPED.sub(_escape, name)
    if len(escaped) <= chars_max:
        return escaped
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{escaped[: chars_max - len(digest) - 1]}~{digest}"


def _escape(found: re.Match[str]) -> str:
    # What `quote` would do, but that leaves tildes and dots as they are.
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass"))
