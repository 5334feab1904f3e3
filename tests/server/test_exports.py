"""Exports that wait to be fetched."""

from __future__ import annotations

from holdfast.server.exports import Exports


def test_the_last_few_are_kept_and_all_go_at_the_end():
    exports = Exports()
    places = [exports.place() for _ in range(7)]
    assert [place.exists() for place in places] == [False] * 2 + [True] * 5
    assert exports.find(places[-1].stem) == places[-1]
    assert exports.find(places[0].stem) is None
    exports.close()
    assert not places[-1].parent.exists()


def test_nothing_is_made_where_nothing_is_exported():
    Exports().close()
