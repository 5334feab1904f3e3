"""Names: a thread of LangGraph may be called anything, a workflow may not."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from urllib.parse import quote, unquote

from holdfast.domain.errors import InvalidIdError
from holdfast.domain.ids import MAX_ID_CHARS

PREFIX = "langgraph/"
#: What has a meaning in names of workflows and checkpoints, or may not be in one at all.
_ESCAPED = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff%@~]|^\\s+|\\s+$")
_HASH_CHARS = 32
_KEPT_CHARS = 120


@lru_cache(maxsize=4096)
def workflow_of(thread_id: str) -> str:
    """Name the workflow of a thread; what is too long ends with a hash after a tilde.

    Raises:
        InvalidIdError: the thread has no name.
    """
    if not thread_id:
        raise InvalidIdError("the thread id is empty", hint='Set configurable["thread_id"] to some text.')
    name = PREFIX + _ESCAPED.sub(_escape, thread_id)
    if len(name) <= MAX_ID_CHARS:
        return name
    digest = hashlib.sha256(thread_id.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{name[:_KEPT_CHARS].rstrip()}~{digest}"


def thread_of(workflow_id: str) -> str | None:
    """Answer the thread that a workflow is of; None if it is of none, or its name was too long."""
    if not workflow_id.startswith(PREFIX) or "~" in workflow_id:
        return None
    return unquote(workflow_id.removeprefix(PREFIX), errors="surrogatepass")


def _escape(found: re.Match[str]) -> str:
    return quote(found[0], safe="", errors="surrogatepass").replace("~", "%7E")
