"""Logs and error reports hold no secrets."""

from __future__ import annotations

import io
import logging
from typing import Any

import pytest

from holdfast.adapters.redaction import engine
from holdfast.application.redaction.log_redaction import RedactingFilter, describe_failure
from holdfast.domain.redaction import Redactor
from tests.canaries import CANARIES, TOKENS, traces

REDACTOR = Redactor(b"k" * 16, engine())
SECRET = TOKENS[0].secret


class _Kept(logging.Handler):
    """Keeps records, and what a usual handler prints of them."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self.stream = io.StringIO()

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        self.stream.write(self.format(record) + "\n")


@pytest.fixture
def log() -> Any:
    logger, handler = logging.Logger("holdfast.test"), _Kept()
    logger.addHandler(handler)
    logger.addFilter(RedactingFilter(REDACTOR))
    return logger, handler


@pytest.mark.sweep
def test_messages_and_arguments_lose_their_secrets(log: Any) -> None:
    logger, handler = log
    for canary in CANARIES:
        logger.warning(canary.text)
        logger.warning("it was %s", canary.text)
    printed = handler.stream.getvalue()
    assert [canary for canary in CANARIES if traces(canary, printed)] == []
    assert "it was [REDACTED:" in printed
    assert all(record.args is None for record in handler.records)


def test_ordinary_records_read_as_before(log: Any) -> None:
    logger, handler = log
    logger.info("wrote %d of %d (%s)", 3, 5, "100 %")
    logger.info("100 % as it is")
    assert handler.stream.getvalue() == "wrote 3 of 5 (100 %)\n100 % as it is\n"


def test_stack_traces_lose_their_secrets(log: Any) -> None:
    logger, handler = log
    try:
        raise ValueError(f"refused: {SECRET}")
    except ValueError:
        logger.exception("it failed", stack_info=True)
    printed = handler.stream.getvalue()
    assert SECRET not in printed
    assert "ValueError: refused: [REDACTED:aws-access-key-id:" in printed
    assert "Traceback" in printed and "Stack (most recent call last)" in printed
    assert handler.records[0].exc_info is None


def test_extra_fields_lose_their_secrets_by_pattern_and_by_name(log: Any) -> None:
    logger, handler = log

    class Odd:
        def __repr__(self) -> str:
            return f"Odd({SECRET})"

    harmless = object()
    logger.info(
        "x",
        extra={
            "password": "abc",
            "note": [SECRET],
            "n": 3,
            "odd": Odd(),
            "by_id": {1: SECRET},
            "o": harmless,
        },
    )
    (record,) = handler.records
    assert SECRET not in str(vars(record))
    assert record.password.startswith("[REDACTED:password:")
    assert (record.n, record.o) == (3, harmless)


def test_arguments_that_do_not_fit_lose_neither_the_message_nor_the_secrecy(log: Any) -> None:
    logger, handler = log
    logger.info("%d of it", SECRET)
    assert "%d of it" in handler.stream.getvalue()
    assert SECRET not in handler.stream.getvalue()


def test_an_error_is_described_with_its_causes_and_without_secrets() -> None:
    try:
        try:
            raise KeyError(SECRET)
        except KeyError as cause:
            raise RuntimeError(f"password={TOKENS[1].secret}") from cause
    except RuntimeError as error:
        failure = describe_failure(error, REDACTOR)
    assert failure.message.startswith("password=[REDACTED:aws-access-key-id:")
    assert "KeyError" in failure.stacktrace and "RuntimeError" in failure.stacktrace
    assert SECRET not in failure.stacktrace and TOKENS[1].secret not in failure.stacktrace


def test_an_error_that_cannot_be_told_is_named() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no")

    assert describe_failure(Mute(), REDACTOR).message == "Mute"
