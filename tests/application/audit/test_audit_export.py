"""An export holds everything that a stranger needs, and the same content gives the same bytes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.audit.audit_export import (
    README_FILE,
    SUMS_FILE,
    TAIL_FILE,
    LogExport,
    payload_line,
    sums_text,
    write_export,
    write_folder,
)
from holdfast.domain.audit_entry import AuditRecord
from holdfast.domain.errors import CheckpointNotFoundError, CheckpointWriteError, ConfigError
from holdfast.domain.ids import folder_name
from holdfast.domain.payload import commitment
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.domain.tiles import ENTRIES, Tile, tiles_of, unpack_bundle
from holdfast.domain.trail import decode_entry
from tests.application.logs import Desk, anchored, make_desk, outcomes, tree_of

SECOND = "Session N\u00ba 2"


@pytest.fixture(scope="module")
def desk() -> Desk:
    """A log of 600 entries and more, two heads, and sessions with names of all kinds."""
    desk = make_desk()
    desk.tell(300, "s-1")
    anchored(desk)
    desk.tell(300, SECOND)
    anchored(desk)
    return desk


def test_the_whole_log_is_there_as_tiles_and_bundles(desk: Desk, tmp_path: Path) -> None:
    result = write_export(desk.kit, tmp_path)
    files = tree_of(tmp_path)
    size = result.signed_size
    assert (result.entries, result.files) == (size, len(files))
    assert result.bytes == sum(map(len, files.values()))
    assert files["checkpoint"] == desk.keeper.checkpoint() and TAIL_FILE not in files
    assert sorted(path for path in files if path.startswith("heads/")) == [
        f"heads/{number:020d}" for number in (301, size)
    ]
    for tile in tiles_of(size):
        assert files[tile.path] == desk.keeper.tiles.read(tile)
    bundles = [Tile(ENTRIES, index, min(256, size - 256 * index)) for index in range(3)]
    lines = [line for bundle in bundles for line in unpack_bundle(files[bundle.path])]
    assert lines == list(desk.store.leaves())[:size]


def test_sums_are_those_of_the_files(desk: Desk, tmp_path: Path) -> None:
    write_export(desk.kit, tmp_path)
    files = tree_of(tmp_path)
    sums = files.pop(SUMS_FILE)
    assert sums == sums_text({path: hashlib.sha256(data).hexdigest() for path, data in files.items()})


def test_sessions_are_files_of_lines(desk: Desk, tmp_path: Path) -> None:
    write_export(desk.kit, tmp_path)
    for session_id in ("s-1", SECOND):
        place = tmp_path / "sessions" / folder_name(session_id)
        lines = (place / "audit_trail.jsonl").read_bytes().splitlines(keepends=True)
        assert lines == list(desk.store.trail(session_id))
        roots = json.loads((place / "merkle_roots.json").read_bytes())
        assert roots[-1]["entries"] == len(lines) and roots[-1]["root"].startswith("sha256:")


def test_payloads_are_there_byte_for_byte(desk: Desk, tmp_path: Path) -> None:
    write_export(desk.kit, tmp_path)
    found = {}
    for path in sorted((tmp_path / "payloads").iterdir()):
        for line in path.read_bytes().splitlines():
            fields = json.loads(line)
            found[fields["session"], fields["seq"]] = fields["text"].encode()
    entries = [decode_entry(line, None) for line in desk.store.leaves()]
    wanted = {(entry.session_id, entry.seq): entry.payload for entry in entries if entry.payload}
    assert {key: commitment(stored) for key, stored in found.items()} == wanted


def test_payloads_can_be_left_out(desk: Desk, tmp_path: Path) -> None:
    write_export(desk.kit, tmp_path / "whole", include_payloads=False)
    write_export(desk.kit, tmp_path / "one", "s-1", include_payloads=False)
    assert not [path for path in tree_of(tmp_path) if "payloads" in path]
    assert b"approve" not in b"".join(tree_of(tmp_path).values())


def test_the_same_content_gives_the_same_bytes(desk: Desk, tmp_path: Path) -> None:
    for session_id in (None, "s-1"):
        for number in range(2):
            write_export(desk.kit, tmp_path / f"{session_id}-{number}", session_id)
        assert tree_of(tmp_path / f"{session_id}-0") == tree_of(tmp_path / f"{session_id}-1")


def test_one_session_comes_with_a_proof_for_each_line_and_nothing_of_others(
    desk: Desk, tmp_path: Path
) -> None:
    result = write_export(desk.kit, tmp_path, SECOND)
    files = tree_of(tmp_path)
    assert (result.entries, result.session_id) == (301, SECOND)
    place = f"sessions/{folder_name(SECOND)}"
    proofs = [path for path in files if path.startswith(f"{place}/proofs/")]
    assert proofs and len(proofs) == 301
    assert b'"s-1"' not in b"".join(files.values())
    assert {path.partition("/")[0] for path in files} == {
        "checkpoint",
        "vkeys",
        "merkle_roots.json",
        "sessions",
        README_FILE,
        SUMS_FILE,
    }


def test_what_no_head_covers_is_the_tail(tmp_path: Path) -> None:
    desk = make_desk()
    desk.tell(5)
    anchored(desk)
    desk.tell(3)
    result = write_export(desk.kit, tmp_path / "whole")
    files = tree_of(tmp_path / "whole")
    assert (result.signed_size, result.entries) == (6, 11)
    assert files[TAIL_FILE].splitlines(keepends=True) == list(desk.store.leaves())[6:]
    assert files["payloads/tail.jsonl"].count(b"\n") == 3
    write_export(desk.kit, tmp_path / "one", "s-1")
    assert len(list((tmp_path / "one").rglob("*.tlog-proof"))) == 6


def test_a_log_that_was_never_signed_is_exported_too(tmp_path: Path) -> None:
    desk = make_desk()
    desk.tell(5)
    result = write_export(desk.kit, tmp_path / "whole")
    files = tree_of(tmp_path / "whole")
    assert (result.signed_size, result.entries) == (0, 6)
    assert "tile/entries/000.p/6" in files and "checkpoint" not in files
    assert b"never signed" in files[README_FILE]
    write_export(desk.kit, tmp_path / "one", "s-1")
    assert not list((tmp_path / "one").rglob("*.tlog-proof"))
    assert write_export(make_desk().kit, tmp_path / "empty").entries == 0


def test_a_damaged_entry_is_exported_as_it_is(tmp_path: Path) -> None:
    desk = make_desk()
    desk.tell(5)
    assert isinstance(desk.store, MemoryStore)
    record = desk.store._leaves[3]
    desk.store._leaves[3] = AuditRecord(record.id, record.head, b'{"payload":"broken\n', record.payload)
    write_export(desk.kit, tmp_path)
    assert b"broken" in tree_of(tmp_path)["tile/entries/000.p/6"]


def test_an_erased_payload_is_in_no_export(tmp_path: Path) -> None:
    desk = make_desk()
    desk.tell(3)
    outcomes(desk.store.commit([Commit(NO_WORKFLOW, Head(), erased=(("s-1", 3),))]))
    write_export(desk.kit, tmp_path)
    lines = tree_of(tmp_path)["payloads/000.jsonl"].splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [2, 4]


def test_a_payload_that_is_no_text_is_in_base64() -> None:
    assert json.loads(payload_line("s", 1, b"\xff\x00")) == {"session": "s", "seq": 1, "base64": "/wA="}


def test_a_folder_that_holds_something_is_left_alone(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"mine")
    with pytest.raises(ConfigError, match="must be empty"):
        write_export(desk.kit, tmp_path)
    assert tree_of(tmp_path) == {"mine": b"mine"}
    with pytest.raises(CheckpointWriteError, match="cannot be written"):
        write_folder(tmp_path / "mine", [])


def test_an_export_that_breaks_off_leaves_its_folder_as_empty_as_it_was(tmp_path: Path) -> None:
    def pieces():
        yield "checkpoint", [b"a head"]
        yield "tile/0/000", [b"a tile"]
        raise OSError(28, "No space left on device")

    with pytest.raises(CheckpointWriteError, match="No space left"):
        write_folder(tmp_path, pieces())
    assert not list(tmp_path.iterdir())


def test_only_its_owner_reads_an_export(desk: Desk, tmp_path: Path) -> None:
    write_export(desk.kit, tmp_path / "export")
    files = [path for path in (tmp_path / "export").rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o077 for path in [tmp_path / "export", *files]} == {0}


def test_there_is_no_export_of_a_session_that_is_not_there(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(CheckpointNotFoundError, match="no such session"):
        write_export(desk.kit, tmp_path / "none", "s-9")


def test_sessions_are_views_and_can_be_left_out(desk: Desk) -> None:
    paths = [path for path, _ in LogExport(desk.store, with_sessions=False).log()]
    assert not [path for path in paths if path.startswith("sessions/")]
