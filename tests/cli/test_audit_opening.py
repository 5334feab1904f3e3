from __future__ import annotations

from pathlib import Path

import click
import pytest

from holdfast.cli.audit_opening import (
    anchor_if_possible,
    find_line,
    find_session,
    keeping,
    log_over,
    looking,
    parse_name,
)
from holdfast.cli.group import Call
from holdfast.domain.errors import CheckpointNotFoundError
from tests.cli.conftest import Run


def test_an_entry_is_named_by_number_or_id():
    assert parse_name("a#b:c#7") == ("a#b:c", 7)
    assert parse_name("a:b:AE-000007") == ("a:b", "AE-000007")
    for text in ("", "a", "a#", "#7", "a#-7"):
        with pytest.raises(click.UsageError):
            parse_name(text)


def test_looking_tells_nothing_by_itself(store: Path):
    call = Call(str(store))
    with looking(call) as (kit, log):
        before = kit.store.integrate()
        assert log.verify().fault_count == 0 and log.query_events()
        assert kit.store.read_only and kit.store.integrate() == before
        assert log_over(kit).verify().head.size == before
        assert find_session(kit, "s-1") == "s-1"
        entry, line = find_line(kit, "s-1#1")
        assert entry.seq == 1 and line.startswith(b'{"id":"AE-000001"')
        with pytest.raises(CheckpointNotFoundError):
            find_session(kit, "s-2")


def test_a_head_is_signed_where_the_key_is_and_elsewhere_nothing_happens(run: Run, store: Path):
    call = Call(str(store))
    anchor_if_possible(call)
    with looking(call) as (_, log):
        assert log.keeper.checkpoint() is None
    with keeping(call) as log:
        log.keeper.anchor(create_key=True)
    run("show", "WF-1", "--store", store)
    with looking(call) as (_, log):
        before = log.verify().signed_size
    anchor_if_possible(call)
    with looking(call) as (_, log):
        assert log.verify().signed_size > before
    anchor_if_possible(Call("nowhere"))
