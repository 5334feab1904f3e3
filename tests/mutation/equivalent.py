"""Mutants that no test can notice, because they do the same, and why."""

from __future__ import annotations

#: (module, function, change): why nothing observable differs.
EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "application/recovery/recovering",
        "Recovery.resume_workflow",
        "not found.success or found.state is None -> not found.success and found.state is None",
    ): "a recovery that was refused has no state, and any other has one",
    (
        "application/recovery/searching",
        "Search._older",
        "entry.sequence < newest.sequence -> entry.sequence <= newest.sequence",
    ): "the newest was found unusable just before, and is so again",
    (
        "domain/replay",
        "_Fold._lend",
        "tasks or () -> tasks and ()",
    ): "where tasks lie is looked up anew: slower, and the same",
    (
        "domain/tiles",
        "read_tile",
        "tile.width < WIDTH -> tile.width <= WIDTH",
    ): "a full tile that is not there is asked for twice",
}


def why_equivalent(module: str, function: str, change: str) -> str | None:
    """Say why a mutant does the same as the original, if that is known."""
    return EQUIVALENT.get((module, function, change))
