"""Commit or restore one large state, and say what memory that took: run as a process of its own."""

from __future__ import annotations

import json
import random
import sys
import warnings
from typing import Any

import holdfast
from benchmarks.measure import resident_megabytes
from holdfast.domain.errors import StateSizeWarning

_WORKFLOW = "large"


def main(what: str, url: str, megabytes: int) -> None:
    warnings.simplefilter("ignore", StateSizeWarning)
    with holdfast.open(url) as service:
        # Imports and caches are there before anything is counted.
        service.create_checkpoint("warm", {"a": 1})
        before, state_megabytes = resident_megabytes("VmRSS"), 0.0
        if what == "commit":
            state = _messages(megabytes)
            state_megabytes = resident_megabytes("VmRSS") - before
            service.create_checkpoint(_WORKFLOW, state)
            peak = resident_megabytes("VmHWM") - before
        else:
            restored = service.load_latest(_WORKFLOW)
            peak = resident_megabytes("VmHWM") - before
            assert restored is not None and restored.context == _messages(megabytes)
    print(json.dumps({"peak_megabytes": peak, "state_megabytes": state_megabytes}))


def _messages(megabytes: int) -> dict[str, Any]:
    """Make a state of messages of a thousand letters, the same each time."""
    chance = random.Random(5)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(3_000)]
    return {
        "messages": [
            {"role": "user", "content": " ".join(chance.choices(words, k=170))[:1_000]}
            for _ in range(megabytes * 1_000)
        ]
    }


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
