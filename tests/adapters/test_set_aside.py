"""A check tells what stands in quarantine, in every store alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.adapters.set_aside import check_quarantine
from tests.damage import KINDS, Spoiler


@pytest.mark.parametrize("kind", KINDS)
def test_what_stands_is_harm_and_what_was_released_is_not(kind: str, tmp_path: Path) -> None:
    spoiler = Spoiler(kind, tmp_path)
    spoiler.fill(3)
    with spoiler.opened() as service:
        name = service.quarantine.put("WF", 2, "a drill").name
        check = service._engine.kit.store.check
        assert [(one.place, one.problem, one.harm) for one in check()] == [
            ("quarantine: WF@2", "a drill", True)
        ]
        service.quarantine.release(name, "only a drill")
        assert [one.harm for one in check()] == [False]
        service.quarantine.drop(name, "over")
        assert list(check()) == []


def test_what_is_no_report_is_told_as_that_and_other_files_are_left_alone() -> None:
    held = {
        "quarantine/a.json": b"{",
        "quarantine/a.bin": b"",
        "quarantine/refused/b": b"",
        "quarantine/refused/c.json": b"",
    }
    [finding] = check_quarantine(held, held.get)
    assert (finding.place, finding.harm) == ("quarantine: quarantine/a.json", True)
