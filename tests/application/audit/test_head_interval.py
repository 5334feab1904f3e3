"""Heads are signed by themselves, each time so many entries were told."""

from __future__ import annotations

import json
from pathlib import Path

import holdfast
from holdfast.application.audit.log_keeping import ROOTS_FILE
from holdfast.domain.audit_type import AuditType


def test_a_head_is_signed_each_time_so_many_entries_were_told(tmp_path: Path) -> None:
    settings = {"signing_key": str(tmp_path / "keys"), "head_interval": 8, "background": False}
    with holdfast.open(str(tmp_path / "store"), **settings) as service:
        service.audit.keeper.anchor(create_key=True)
        for number in range(40):
            service.create_checkpoint("W", {"n": number})
            # Without a thread, what is due is done by whoever flushes.
            service.flush()
        store = service._engine.kit.store
        roots = json.loads(store.file(ROOTS_FILE) or b"[]")
        signed = service.audit.query_events(event_types=[AuditType.HEAD_SIGNED])
        assert len(roots) == len(signed) >= 4
        assert [root["size"] for root in roots] == sorted({root["size"] for root in roots})
        assert service.audit.verify().fault_count == 0
