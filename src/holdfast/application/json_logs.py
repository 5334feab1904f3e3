"""Logs for programs: one JSON object per line, without secrets."""

from __future__ import annotations

import copy
import json
import logging
from datetime import UTC, datetime
from typing import Any

from holdfast.application.redaction.log_redaction import HidesAll, RedactingFilter, extra_of
from holdfast.application.redaction.redacting import LOGS
from holdfast.application.trailing import correlation

#: What a caller may say by `extra`, under the name that the line has for it.
_NAMED = {"workflow": "workflow", "workflow_id": "workflow", "request_id": "request_id"}


class JsonLines(logging.Formatter):
    """Writes each record as `time`, `level`, `logger`, `event`, `message`, and what else is known of it.

    `workflow` and whatever was given as `extra` stand beside them; `request_id` too, which is that of
    `correlate` where the caller gives none. Secrets are hidden here once more, whatever filters there are.
    """

    def __init__(self, redactor: HidesAll = LOGS) -> None:
        super().__init__()
        self._hide = RedactingFilter(redactor)

    def format(self, record: logging.LogRecord) -> str:
        """Write one record."""
        # Other handlers get the record as it was.
        own = copy.copy(record)
        extra = extra_of(own)
        self._hide.filter(own)
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(own.created, UTC).isoformat(timespec="milliseconds"),
            "level": own.levelname.lower(),
            "logger": own.name,
            "event": f"{own.module}.{own.funcName.strip('_')}" if own.funcName else own.module,
            "message": own.getMessage(),
        }
        if (request_id := correlation()) is not None:
            line["request_id"] = request_id
        # What other packages put into records for themselves begins with an underscore.
        line |= {_NAMED.get(name, name): getattr(own, name) for name in extra if not name.startswith("_")}
        if own.exc_text:
            line["error"] = own.exc_text
        return json.dumps(line, ensure_ascii=False, default=repr, skipkeys=True)
