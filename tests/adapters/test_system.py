"""The real clock and real ids."""

from __future__ import annotations

import subprocess
import sys
import threading
import uuid
from datetime import UTC, datetime

from holdfast.adapters.system import RandomIds, SystemClock, space_of


def test_the_clock_tells_the_time_in_utc() -> None:
    before = datetime.now(UTC)
    now = SystemClock().now()
    assert before <= now <= datetime.now(UTC)
    assert now.tzinfo is UTC


def test_ids_are_uuids_of_version_4_in_their_canonical_form() -> None:
    ids = RandomIds()
    for _ in range(1000):
        text = ids.new()
        parsed = uuid.UUID(text)
        assert str(parsed) == text
        assert (parsed.version, parsed.variant) == (4, uuid.RFC_4122)


def test_no_id_comes_twice_from_several_threads() -> None:
    ids = RandomIds()
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.extend(ids.new() for _ in range(2000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 8000


def test_a_forked_child_makes_ids_of_its_own() -> None:
    program = (
        "import os\n"
        "from holdfast.adapters.system import RandomIds\n"
        "ids = RandomIds()\n"
        "ids.new()\n"
        "child = os.fork()\n"
        "child and os.waitpid(child, 0)\n"
        "print(ids.new(), flush=True)\n"
        "os._exit(0)\n"
    )
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    first, second = result.stdout.split()
    assert first != second


def test_the_room_on_the_disk_of_a_store_is_told_and_where_there_is_none_nothing(tmp_path) -> None:
    space = space_of(f"file:{tmp_path}/store")
    assert space is not None
    total, free = space() or (0, 0)
    assert total >= free > 0
    gone = space_of(f"sqlite:{tmp_path}/gone/store.db")
    assert gone is not None and gone() is None
    assert space_of("memory:") is None and space_of("postgresql://host/db") is None
