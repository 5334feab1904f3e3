"""The newest checkpoint of a workflow is found by an index, however many there are."""

from __future__ import annotations

import holdfast
from tests.adapters.postgres import server


def test_the_newest_checkpoint_of_a_workflow_is_found_by_an_index(url: str) -> None:
    with holdfast.open(url, retain=False) as service:
        for number in range(3):
            service.create_checkpoint("W", {"n": number})
    query = "select * from checkpoints where workflow_id = 'W' order by sequence desc limit 1"
    with server.connected(url) as connection:
        # A table of three rows is read as a whole, unless that is forbidden.
        connection.execute("set enable_seqscan = off")
        plan = "\n".join(line for (line,) in connection.execute(f"explain {query}").fetchall())
    assert "Index Scan Backward using checkpoints_pkey" in plan and "Sort" not in plan
