"""A store whose trail is signed in part, and a walk through its entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import holdfast
from tests.server.served import Caller


def signed(url: str, folder: Path) -> str:
    """Fill a store, sign its trail, and go on for a bit."""
    with holdfast.open(url, actor="ann", signing_key=str(folder / "keys")) as service:
        for number in range(30):
            service.create_checkpoint(f"WF-{number % 3}", {"n": number})
        service.record_decision("WF-1", "go on", rationale="why not", confidence=0.5)
        service.audit.keeper.anchor(create_key=True)
        service.create_checkpoint("WF-1", {"n": "after the head"})
    return url


def walked(call: Caller, query: str = "") -> list[dict[str, Any]]:
    """Follow the cursors to the end."""
    rows, cursor = list[dict[str, Any]](), ""
    while True:
        page = call.get(f"/v1/audit/entries?limit=7{query}{cursor}")
        rows += page["items"]
        if page["next_cursor"] is None:
            return rows
        cursor = f"&cursor={page['next_cursor']}"
