"""Logs as JSON lines: what is in them, and what never is."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from holdfast.adapters.redactors import passing_redactor
from holdfast.application.json_logs import JsonLines
from holdfast.application.trailing import correlate

SECRET = "ghp_" + "a1B2c3D4e5" * 4


@pytest.fixture
def written() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """A logger, and what its lines are written to."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines(passing_redactor()))
    logger = logging.getLogger("holdfast.test_json_logs")
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    yield logger, stream
    logger.removeHandler(handler)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_record_is_one_line_that_says_when_what_and_about_what(
    written: tuple[logging.Logger, io.StringIO],
) -> None:
    logger, stream = written
    with correlate("req-7"):
        logger.warning("%d audit\nentries wait", 3, extra={"workflow": "WF-1", "attempt": 2})
    [line] = lines(stream)
    moment = datetime.fromisoformat(line.pop("time"))
    assert moment.tzinfo is not None
    assert line == {
        "level": "warning",
        "logger": "holdfast.test_json_logs",
        "event": "test_json_logs.test_a_record_is_one_line_that_says_when_what_and_about_what",
        "message": "3 audit\nentries wait",
        "request_id": "req-7",
        "workflow": "WF-1",
        "attempt": 2,
    }


def test_the_caller_may_name_event_request_and_workflow(written: tuple[logging.Logger, io.StringIO]) -> None:
    logger, stream = written
    extra = {"event": "lease.lost", "request_id": "r-1", "workflow_id": "WF-2"}
    logger.info("gone", extra=extra)
    [line] = lines(stream)
    assert (line["event"], line["request_id"], line["workflow"]) == ("lease.lost", "r-1", "WF-2")
    assert "workflow_id" not in line


def test_no_secret_comes_into_a_line(written: tuple[logging.Logger, io.StringIO]) -> None:
    logger, stream = written
    try:
        raise ValueError(f"token {SECRET}")
    except ValueError:
        logger.exception("refused %s", SECRET, extra={"header": f"Bearer {SECRET}", "deep": {"a": [SECRET]}})
    [line] = lines(stream)
    assert SECRET not in stream.getvalue()
    assert "ValueError" in line["error"] and "refused" in line["message"]


def test_other_handlers_get_the_record_as_it_was() -> None:
    record = logging.makeLogRecord({"msg": "refused %s", "args": (SECRET,), "levelname": "INFO"})
    assert SECRET not in JsonLines(passing_redactor()).format(record)
    assert record.getMessage() == f"refused {SECRET}"


def test_what_json_cannot_hold_is_written_as_people_read_it(
    written: tuple[logging.Logger, io.StringIO],
) -> None:
    logger, stream = written
    logger.info("odd", extra={"thing": object, "by_number": {1: "a", (2, 3): "b"}})
    [line] = lines(stream)
    assert line["thing"] == repr(object)
