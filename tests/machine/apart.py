"""A call in a process of its own: it leaves nothing open, and it opens a store as the next process would."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a fork and answer what it answered; JSON must be able to say it.

    Raises:
        RuntimeError: it raised something, or died.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        _answer(writing, function, *arguments)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status:
        raise RuntimeError(f"ended with {status}: {answer.decode(errors='replace')}")
    return json.loads(answer)


def _answer(writing: int, function: Callable[..., Any], *arguments: Any) -> None:
    status, said = 0, ""
    try:
        said = json.dumps(function(*arguments))
    except BaseException:
        status, said = 1, traceback.format_exc()
    finally:
        with os.fdopen(writing, "w") as pipe:
            pipe.write(said)
        sys.stderr.flush()
        os._exit(status)


def checked(check: Callable[..., list[str]], *arguments: Any) -> list[str]:
    """Call what answers violations; an error that is not ours is one."""
    try:
        return [str(found) for found in apart(check, *arguments)]
    except RuntimeError as error:
        return [f"what is left ends in an error that is not ours: {str(error)[-300:]}"]
