"""Errors of the driver come out as ours, with what to do."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from holdfast.adapters.postgres import faults
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointReadError,
    CheckpointWriteError,
    DiskFullError,
    InvalidIdError,
    PermissionDeniedError,
    StoreLockedError,
    StoreNotFoundError,
    StoreReadOnlyError,
)


@pytest.mark.parametrize(
    ("kind", "ours"),
    [
        (errors.DiskFull, DiskFullError),
        (errors.ReadOnlySqlTransaction, StoreReadOnlyError),
        (errors.InsufficientPrivilege, PermissionDeniedError),
        (errors.InvalidPassword, PermissionDeniedError),
        (errors.UndefinedTable, StoreNotFoundError),
        (errors.InvalidCatalogName, StoreNotFoundError),
        (errors.LockNotAvailable, StoreLockedError),
        (errors.DataCorrupted, CheckpointCorruptError),
        (errors.UntranslatableCharacter, InvalidIdError),
        (errors.OutOfMemory, CheckpointWriteError),
    ],
)
def test_what_the_server_says_is_translated(kind, ours):
    error = faults.translate(kind("it says so"), "here", is_writing=True)
    assert type(error) is ours
    assert "it says so" in error.message and error.place == "here" and error.hint


def test_a_question_that_fails_is_a_failure_to_read():
    assert type(faults.translate(errors.OutOfMemory("no"), "", is_writing=False)) is CheckpointReadError


def test_a_text_the_driver_does_not_send_is_no_name():
    assert type(faults.translate(psycopg.DataError("NUL"), "", is_writing=True)) is InvalidIdError


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ('FATAL:  password authentication failed for user "ann"', PermissionDeniedError),
        ("fe_sendauth: no password supplied", PermissionDeniedError),
        ('FATAL:  role "ann" does not exist', PermissionDeniedError),
        ('FATAL:  no pg_hba.conf entry for host "1.2.3.4"', PermissionDeniedError),
        ('FATAL:  permission denied for database "work"', PermissionDeniedError),
        ('FATAL:  database "work" does not exist', StoreNotFoundError),
        ("Connection refused", CheckpointReadError),
        ("FATAL:  the database system is starting up", CheckpointReadError),
        ('could not translate host name "nowhere"', CheckpointReadError),
    ],
)
def test_a_refused_connection_is_told_by_what_to_do_about_it(text, ours):
    refused = psycopg.OperationalError(f"connection failed: connection to server failed: {text}\n")
    error = faults.translate_refusal(refused, "postgresql://h/d")
    assert type(error) is ours
    assert text.removeprefix("FATAL:  ") in error.message and error.hint


def test_of_several_lines_the_last_attempt_is_told():
    text = "All failures were:\n- a: connection failed: timeout\n- b: connection failed: refused\n\tIs it on?"
    assert faults.told(psycopg.OperationalError(text)) == "- b: connection failed: refused"
    assert faults.told(psycopg.OperationalError("")) == "OperationalError"


@pytest.mark.parametrize(
    "state", ["starting up", "in recovery mode", "shutting down", "not accepting connections"]
)
def test_a_server_that_is_not_ready_yet_is_told_from_one_that_refuses(state):
    fault = psycopg.OperationalError(f"connection failed: FATAL:  the database system is {state}")
    assert faults.is_getting_ready(fault)
    assert type(faults.translate_refusal(fault, "here")) is CheckpointReadError
    assert not faults.is_getting_ready(psycopg.OperationalError('FATAL:  database "x" does not exist'))


def test_what_was_given_up_says_whether_anything_may_have_been_kept():
    away = CheckpointReadError("the server is away", place="there")
    assert "nothing was recorded" in str(faults.unwritten(away, is_repeated=False))
    for problem in (faults.unwritten(away, is_repeated=True), faults.unknown("it is away", "there")):
        assert "unknown" in str(problem) and problem.place == "there"
