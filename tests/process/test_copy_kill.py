"""Real `kill -9` of a running copy, again and again: it goes on where it was, and ends equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process.evidence import keep
from tests.process.running import run


@pytest.mark.parametrize("scheme", ["file", "sqlite"])
def test_a_killed_copy_goes_on_until_everything_is_equal(
    scheme: str, fast_folder: Path, campaign: bool
) -> None:
    rounds = 250 if campaign else 10
    folder = str(fast_folder)
    result = run("copying", "kill", seed=7, rounds=rounds, folder=folder, scheme=scheme, trusts=False)
    counts = {name: result[name] for name in ("kills", "copies", "refused")}
    keep("copy", f"killed, into {scheme}", counts, result["violations"])
    assert result["violations"] == []
    assert result["kills"] >= rounds and result["copies"] > 1 and result["refused"] > 0


def test_the_harness_notices_a_copy_that_trusts_what_it_finds(fast_folder: Path) -> None:
    """The negative control: without comparing checksums another history is mixed in, and that is seen."""
    folder = str(fast_folder)
    result = run("copying", "kill", seed=7, rounds=25, folder=folder, scheme="file", trusts=True)
    keep("copy", "control: trusts", {"kills": result["kills"], "found": len(result["violations"])}, [])
    assert any("another history was mixed into" in violation for violation in result["violations"])
