"""Every decoder over what is really written, and over a few hundred changes of it; and one that is broken."""

from __future__ import annotations

import pytest

from tests.fuzz.mutating import mutations
from tests.fuzz.table import TARGETS
from tests.fuzz.target import Target, verdict

#: Those that open a store or run a server for each input.
SLOW = {
    "archive_file": 10,
    "command_line": 20,
    "export_folder": 40,
    "http_request": 60,
    "mcp_call": 40,
    "redaction_pattern": 60,
    "whole_store": 15,
    "written_store": 2,
}
MUTATIONS = 250


@pytest.mark.sweep
@pytest.mark.parametrize("name", TARGETS)
def test_a_decoder_answers_or_raises_an_error_of_ours(name: str) -> None:
    target = TARGETS[name]
    seeds = list(target.seeds())
    assert seeds
    for data in [*seeds, b"", *mutations(seeds, SLOW.get(name, MUTATIONS), seed=9)]:
        problem = verdict(target, data)
        assert problem is None, f"{name} {data!r}: {problem}"


def test_a_decoder_that_lets_an_index_error_out_is_found() -> None:
    def broken(data: bytes) -> int:
        return data[data[0]] if data else 0

    target = Target("broken", broken, lambda: [bytes(8)])
    problems = {verdict(target, data) for data in mutations([bytes(8)], 300, seed=9)}
    assert any(problem and problem.startswith("IndexError") for problem in problems)
