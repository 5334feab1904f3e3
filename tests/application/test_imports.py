"""What came along with copies is read as the exports that it arrived as."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from holdfast import bootstrap
from holdfast.application.imports import imported_lines, imports
from holdfast.domain.trail import decode_entry


def test_every_entry_of_every_import_is_given(tmp_path: Path):
    told = []
    for name in ("one", "two"):
        with bootstrap.open(str(tmp_path / name), session=f"s-{name}") as service:
            service.create_checkpoint(name, {"n": 1})
        with bootstrap.open(str(tmp_path / name), read_only=True, audit=False) as service:
            store = service._engine.kit.store
            told += [*store.leaves(), *store.waiting()]
        command = [sys.executable, "-m", "holdfast", "copy", str(tmp_path / name), str(tmp_path / "all")]
        subprocess.run(command, check=True, capture_output=True)
    with bootstrap.open(str(tmp_path / "all"), read_only=True, audit=False) as service:
        store = service._engine.kit.store
        assert len(imports(store)) == 2
        assert sorted(imported_lines(store)) == sorted(told)
        assert {decode_entry(line, None).session_id for line in imported_lines(store)} == {"s-one", "s-two"}


def test_where_nothing_was_copied_there_is_nothing():
    with bootstrap.open("memory:") as service:
        assert imports(service._engine.kit.store) == [] == list(imported_lines(service._engine.kit.store))
