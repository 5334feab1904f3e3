"""`holdfast token`: a group that says what it is for."""

from __future__ import annotations


def test_the_group_tells_its_commands(run):
    shown = run("token", "--help").out
    assert all(word in shown for word in ("create", "list", "revoke"))
