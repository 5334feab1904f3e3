"""No secret in logs and error reports either."""

from __future__ import annotations

import logging
import traceback
from typing import Any, Protocol

from holdfast.domain.value import value

#: What every record has; the rest was given by the caller as `extra`.
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

_SCALARS = frozenset({str, bytes, int, float, bool, type(None)})


class HidesText(Protocol):
    """What hides the secrets of texts."""

    def text(self, text: str) -> str:
        """Hide the secrets of a text."""


class HidesAll(HidesText, Protocol):
    """What hides the secrets of texts and plain trees."""

    def tree(self, tree: Any) -> tuple[Any, list[Any]]:
        """Hide the secrets of a plain tree; answer it with the paths of what was hidden."""


@value
class Failure:
    """An error as it may be stored: its message and stack trace, without secrets."""

    message: str
    stacktrace: str


def describe_failure(error: BaseException, redactor: HidesText) -> Failure:
    """Tell an error and where it came from, causes included, without secrets."""
    trace = "".join(traceback.format_exception(error))
    return Failure(redactor.text(_message(error)), redactor.text(trace))


class RedactingFilter(logging.Filter):
    """Hides secrets in the records of a logger: message, arguments, stack trace and extra fields.

    A logger asks its own filters only for records made with it; add one to each logger, or to the handlers.
    """

    def __init__(self, redactor: HidesAll) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record; every record passes."""
        record.msg, record.args = self._redactor.text(_formatted(record)), None
        if record.exc_info:
            # A formatter prefers the text; whoever else reads records must not find the error itself.
            record.exc_text = logging.Formatter().formatException(record.exc_info)
            record.exc_info = None
        if record.exc_text:
            record.exc_text = self._redactor.text(record.exc_text)
        if record.stack_info:
            record.stack_info = self._redactor.text(record.stack_info)
        hidden = {name: self._hidden(name, value) for name, value in extra_of(record).items()}
        vars(record).update(hidden)
        return True

    def _hidden(self, name: str, value: Any) -> Any:
        """Hide in an extra field; what is not plain data is judged by what a log would show of it."""
        shown = value if _is_plain(value) else repr(value)
        hidden, _ = self._redactor.tree({name: shown})
        found = next(iter(hidden.values()))
        return value if found == shown else found


def extra_of(record: logging.LogRecord) -> dict[str, Any]:
    """Answer what the caller of a log gave as `extra`."""
    return {name: value for name, value in vars(record).items() if name not in _USUAL}


def _is_plain(value: Any) -> bool:
    todo = [value]
    while todo:
        item = todo.pop()
        if type(item) is dict:
            todo += [*item, *item.values()]
            if not all(type(key) is str for key in item):
                return False
        elif type(item) is list:
            todo += item
        elif type(item) not in _SCALARS:
            return False
    return True


def _formatted(record: logging.LogRecord) -> str:
    """Format a record; one whose arguments do not fit must not lose its message."""
    try:
        return record.getMessage()
    except Exception:
        return f"{record.msg} {record.args}"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return type(error).__name__
