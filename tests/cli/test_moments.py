from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click
import pytest

from holdfast.cli.moments import moment, read_point, read_span, span

CONTEXT = click.Context(click.Command("show"))
OPTION = click.Option(["--since"])


def test_spans_have_a_number_and_a_unit():
    assert [span(text) for text in ("90m", "7d", "2w")] == [
        timedelta(minutes=90),
        timedelta(days=7),
        timedelta(weeks=2),
    ]
    assert [span(text) for text in ("", "7", "d", "-1d", "1y")] == [None] * 5


def test_a_moment_is_a_time_or_so_long_ago():
    assert moment("2026-01-31") == datetime(2026, 1, 31, tzinfo=UTC)
    assert moment("2026-01-31T12:00+02:00") == datetime(2026, 1, 31, 10, tzinfo=UTC)
    before = datetime.now(UTC)
    assert before - timedelta(hours=1) <= moment("1h") <= datetime.now(UTC) - timedelta(hours=1)


@pytest.mark.parametrize("text", ["", "yesterday", "999999w", "0001-01-01T00:00+23:00"])
def test_what_is_no_moment_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        moment(text)


def test_what_is_no_span_is_refused():
    assert read_span(CONTEXT, OPTION, None) is None
    with pytest.raises(click.BadParameter, match="write 36h"):
        read_span(CONTEXT, OPTION, "long")


def test_so_long_ago_becomes_a_point_in_time():
    before = datetime.now(UTC) - timedelta(minutes=10)
    written = read_point(CONTEXT, OPTION, "WF@home@{10m ago}")
    assert written is not None
    name, _, when = written.rpartition("@time:")
    assert name == "WF@home"
    assert before <= datetime.fromisoformat(when) <= datetime.now(UTC) - timedelta(minutes=10)
    assert read_point(CONTEXT, OPTION, "WF@{2026-01-31}") == "WF@time:2026-01-31T00:00:00.000000Z"


@pytest.mark.parametrize("text", [None, "WF", "WF@3", "{10m ago}", "WF@latest~2", "WF@{"])
def test_everything_else_stays_what_it_is(text):
    assert read_point(CONTEXT, OPTION, text) == text


def test_braces_with_something_else_are_refused():
    with pytest.raises(click.BadParameter, match="between braces stands a time"):
        read_point(CONTEXT, OPTION, "WF@{soon}")
