"""DBOS: run by the python of its own environment, in a process that may be told to kill itself."""

from __future__ import annotations

import sqlite3
import threading
from importlib import import_module, metadata
from typing import Any

from benchmarks.peers.steps import STEPS, WORKFLOW_ID, Asked, Steps, asked

#: How often the end is asked for once the last step is done. Asking all along would slow the steps down, and
#: asking once a second, as is the default, would measure the asking.
POLLING_SECONDS = 0.005


def main(asked: Asked) -> None:
    # Imported by name: it is not in the environment that checks types.
    dbos = import_module("dbos")
    steps = Steps(asked)
    entered: list[float] = []
    stepped = threading.Event()

    # A plain function: what it is declared with is written into it.
    def one(number: int) -> dict[str, Any]:
        return steps.step(number)

    step = dbos.DBOS.step(name="step")(one)

    def thousand() -> int:
        entered.append(steps.since())
        characters = sum(len(step(number)["text"]) for number in range(STEPS))
        stepped.set()
        return characters

    workflow = dbos.DBOS.workflow(name="thousand")(thousand)
    dbos.DBOS(config=_config(asked.url))
    steps.begin()
    dbos.DBOS.launch()
    if asked.resume:
        stepped.wait()
        dbos.DBOS.retrieve_workflow(WORKFLOW_ID).get_result(polling_interval_sec=POLLING_SECONDS)
    else:
        with dbos.SetWorkflowID(WORKFLOW_ID):
            workflow()
    end_seconds = steps.since()
    steps.report(end_seconds=end_seconds, workflow_seconds=entered[0], **_versions())
    dbos.DBOS.destroy()


def _config(url: str) -> dict[str, Any]:
    """As it comes, but silent: no console, no telemetry, and nobody outside to report to."""
    return {
        "name": "steps",
        "system_database_url": url,
        "log_level": "ERROR",
        "enable_otlp": False,
        # Otherwise a hash of the code, and a workflow is only recovered by code with the same.
        "application_version": "1",
    }


def _versions() -> dict[str, str]:
    return {"dbos": metadata.version("dbos"), "sqlite": sqlite3.sqlite_version}


if __name__ == "__main__":
    main(asked())
