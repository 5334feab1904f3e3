"""An export is verified with no store; whatever was done to it is found."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from holdfast.application.audit.audit_export import SUMS_FILE, large_payload_path, payloads_path, write_export
from holdfast.application.audit.export_source import ExportSource
from holdfast.domain.errors import CheckpointNotFoundError
from holdfast.domain.log_check import Level, LogReport, Trust, Verdict
from holdfast.domain.note import parse_note
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.domain.trail_check import Kind
from holdfast.domain.treehead import TreeHead, parse_head
from tests.application.logs import WITNESS, Desk, anchored, cosigned, make_desk, outcomes, tree_of


@pytest.fixture(scope="module")
def desk() -> Desk:
    desk = make_desk()
    desk.tell(280, "s-1")
    anchored(desk)
    desk.tell(20, "s-2")
    desk.keeper.add_cosignature(cosigned(anchored(desk)))
    return desk


@pytest.fixture(scope="module")
def exports(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports")
    write_export(desk.kit, folder / "whole")
    write_export(desk.kit, folder / "one", "s-2")
    return folder


def verify(folder: Path, trust: Trust) -> LogReport:
    return ExportSource(folder).verify(trust)


def head_of(desk: Desk) -> TreeHead:
    return parse_head(parse_note(desk.keeper.checkpoint() or b"").text)


def test_a_whole_export_verifies(desk: Desk, exports: Path) -> None:
    report = verify(exports / "whole", desk.log.trust())
    assert (report.verdict(Level.SIGNED), report.level) == (Verdict.OK, Level.SIGNED)
    assert (report.payloads, report.erased, report.heads, report.tail) == (300, 0, 2, 0)
    assert report.missing_tiles == 0 and report.tiles >= 3
    source = ExportSource(exports / "whole")
    assert source.keys() == desk.keeper.keys() and source.is_whole


def test_one_session_verifies(desk: Desk, exports: Path) -> None:
    report = verify(exports / "one", desk.log.trust())
    assert (report.verdict(Level.SIGNED), report.entries, report.sessions) == (Verdict.OK, 21, 1)
    assert (report.payloads, report.tail, report.signed_size) == (20, 0, head_of(desk).size)
    assert not ExportSource(exports / "one").is_whole


@pytest.mark.parametrize("kind", ["whole", "one"])
def test_pins_and_witnesses_count(kind: str, desk: Desk, exports: Path) -> None:
    trust = desk.log.trust(pins=[head_of(desk)])
    assert verify(exports / kind, trust).level is Level.PINNED
    trust = desk.log.trust(witness_keys=[WITNESS.key])
    assert verify(exports / kind, trust).level is Level.WITNESSED
    later = TreeHead(head_of(desk).origin, 999, bytes(32))
    assert verify(exports / kind, desk.log.trust(pins=[later])).verdict() is Verdict.FAILED


@pytest.mark.parametrize("kind", ["whole", "one"])
def test_without_a_key_only_the_chain_counts(kind: str, desk: Desk, exports: Path) -> None:
    bare = Trust(desk.log.trust().verify)
    assert verify(exports / kind, bare).level is Level.CHAIN
    other = Trust(bare.verify, (WITNESS.key,))
    assert verify(exports / kind, other).verdict() is Verdict.FAILED


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["whole", "one"])
def test_every_file_that_is_changed_or_gone_is_found(
    kind: str, desk: Desk, exports: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "export"
    shutil.copytree(exports / kind, folder)
    trust = desk.log.trust()
    for path, data in tree_of(folder).items():
        if path == SUMS_FILE:
            continue
        (folder / path).write_bytes(data[:-2] + b"X\n")
        assert verify(folder, trust).verdict() is Verdict.FAILED, path
        (folder / path).unlink()
        assert verify(folder, trust).verdict() is Verdict.FAILED, path
        (folder / path).write_bytes(data)
    assert verify(folder, trust).verdict(Level.SIGNED) is Verdict.OK
    (folder / "more").write_bytes(b"more")
    assert verify(folder, trust).verdict() is Verdict.FAILED


def resum(folder: Path) -> None:
    """Do what whoever forges an export does, too: make the sums anew."""
    from holdfast.application.audit.audit_export import sums_text
    from holdfast.application.audit.export_source import _sum_of

    (folder / SUMS_FILE).unlink()
    sums = {path: _sum_of(folder / path) for path in tree_of(folder)}
    (folder / SUMS_FILE).write_bytes(sums_text(sums))


#: Pages and lists for people, which nothing else in an export says again.
FOR_PEOPLE = ("README.txt", "merkle_roots.json", "vkeys")


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["whole", "one"])
def test_sums_made_anew_help_nobody(kind: str, desk: Desk, exports: Path, tmp_path: Path) -> None:
    folder = tmp_path / "export"
    shutil.copytree(exports / kind, folder)
    trust = desk.log.trust()
    for path, data in tree_of(folder).items():
        if path == SUMS_FILE or path.endswith(FOR_PEOPLE):
            continue
        at = len(data) // 2
        (folder / path).write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        resum(folder)
        report = verify(folder, trust)
        is_erased = "payloads" in path and report.erased
        assert report.verdict() is Verdict.FAILED or is_erased, path
        (folder / path).write_bytes(data)


PAYLOAD = b'{"session":"s-2","seq":%d,"text":"forged"}\n'


@pytest.mark.parametrize(
    ("kind", "path", "line", "problem"),
    [
        ("whole", "payloads/000.jsonl", PAYLOAD % 1, "a payload belongs to no entry"),
        ("whole", "payloads/001.jsonl", PAYLOAD % 2, "an entry has two payloads"),
        ("whole", "payloads/007.jsonl", PAYLOAD % 2, "its payloads belong to no entry"),
        ("whole", "payloads/001.jsonl", b"approved\n", "a line is no payload"),
        ("one", "sessions/s-2/payloads.jsonl", PAYLOAD % 1, "a payload belongs to no entry"),
        ("one", "sessions/s-2/payloads.jsonl", PAYLOAD % 2, "an entry has two payloads"),
        ("one", "payloads/000.jsonl", PAYLOAD % 2, "its payloads belong to no entry"),
    ],
)
def test_a_payload_that_no_entry_commits_to_is_found(
    kind: str, path: str, line: bytes, problem: str, desk: Desk, exports: Path, tmp_path: Path
) -> None:
    shutil.copytree(exports / kind, tmp_path / "export")
    place = tmp_path / "export" / path
    place.parent.mkdir(exist_ok=True)
    # Put first: of two payloads the right one must not hide the other.
    place.write_bytes(line + (place.read_bytes() if place.exists() else b""))
    resum(tmp_path / "export")
    report = verify(tmp_path / "export", desk.log.trust())
    assert report.verdict() is Verdict.FAILED
    assert problem in {fault.problem for fault in report.faults}


@pytest.mark.parametrize("path", ["merkle_roots.json", "sessions/s-1/merkle_roots.json"])
@pytest.mark.parametrize("change", [b'"sha256:', b'"size":', b"[\n"])
def test_a_list_that_names_a_head_that_was_not_signed_is_found(
    path: str, change: bytes, desk: Desk, exports: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "export"
    shutil.copytree(exports / "whole", folder)
    place = folder / path
    place.write_bytes(place.read_bytes().replace(change, change + b"9", 1))
    resum(folder)
    report = verify(folder, desk.log.trust())
    assert [fault.problem for fault in report.faults] == ["a list of heads names one that was not signed"]


def test_a_session_under_the_name_of_another_is_found(desk: Desk, exports: Path, tmp_path: Path) -> None:
    folder = tmp_path / "export"
    shutil.copytree(exports / "one", folder)
    (folder / "sessions" / "s-2").rename(folder / "sessions" / "s-1")
    resum(folder)
    report = verify(folder, desk.log.trust())
    assert [fault.problem for fault in report.faults] == ["the folder has the name of another session"]


def test_a_session_that_is_not_in_the_log_is_found(desk: Desk, exports: Path, tmp_path: Path) -> None:
    folder = tmp_path / "export"
    shutil.copytree(exports / "whole", folder)
    shutil.copytree(folder / "sessions" / "s-1", folder / "sessions" / "s-9")
    resum(folder)
    report = verify(folder, desk.log.trust())
    assert [str(fault) for fault in report.faults] == ["the log has no such session: sessions/'s-9'"]


def test_erased_payloads_are_counted(tmp_path: Path) -> None:
    desk = make_desk()
    desk.tell(5)
    anchored(desk)
    desk.tell(2)
    outcomes(desk.store.commit([Commit(NO_WORKFLOW, Head(), erased=(("s-1", 3), ("s-1", 7)))]))
    write_export(desk.kit, tmp_path / "whole")
    report = verify(tmp_path / "whole", desk.log.trust())
    assert (report.verdict(Level.SIGNED), report.payloads, report.erased) == (Verdict.OK, 5, 2)
    # The beginning of the session that tells of heads, the head, and two decisions.
    assert (report.tail, report.waiting) == (4, 4)
    write_export(desk.kit, tmp_path / "one", "s-1")
    report = verify(tmp_path / "one", desk.log.trust())
    assert (report.verdict(Level.SIGNED), report.payloads, report.erased, report.tail) == (
        Verdict.OK,
        5,
        2,
        2,
    )


def test_a_log_that_was_never_signed_has_its_chains(tmp_path: Path) -> None:
    desk = make_desk()
    desk.tell(300)
    write_export(desk.kit, tmp_path / "whole")
    write_export(desk.kit, tmp_path / "one", "s-1")
    for kind in ("whole", "one"):
        report = verify(tmp_path / kind, Trust(lambda key, message, signature: False))
        assert (report.level, report.entries, report.fault_count) == (Level.CHAIN, 301, 0)


@pytest.mark.sweep
def test_progress_is_told(desk: Desk, tmp_path: Path) -> None:
    many = make_desk()
    many.tell(4200)
    anchored(many)
    write_export(many.kit, tmp_path)
    seen: list[tuple[int, int]] = []
    ExportSource(tmp_path).verify(
        many.log.trust(), on_progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(4096, 4201)]


def test_what_is_no_export_is_told(tmp_path: Path) -> None:
    with pytest.raises(CheckpointNotFoundError, match="no export, or one that was not finished"):
        ExportSource(tmp_path)
    (tmp_path / SUMS_FILE).write_bytes(b"")
    with pytest.raises(CheckpointNotFoundError, match="neither a log nor a session"):
        ExportSource(tmp_path).evidence()


@pytest.mark.parametrize("line", [b"[" * 200_000, b'{"session":"s","seq":1e999,"text":"x"}'])
def test_a_line_that_is_no_payload_ends_no_verification(
    line: bytes, desk: Desk, exports: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "export"
    shutil.copytree(exports / "whole", folder)
    (folder / "payloads" / "000.jsonl").write_bytes(line + b"\n")
    report = verify(folder, desk.log.trust())
    assert report.erased
    assert report.verdict() is Verdict.FAILED


def test_a_payload_that_lies_by_itself_is_found_and_checked(tmp_path: Path) -> None:
    desk = make_desk()
    desk.tell(3)
    anchored(desk)
    write_export(desk.kit, tmp_path / "out")
    together = tmp_path / "out" / payloads_path(0)
    first, second, third = together.read_bytes().splitlines(keepends=True)
    together.write_bytes(first)
    for seq, line in ((3, second), (4, first)):
        alone = tmp_path / "out" / large_payload_path("s-1", seq)
        alone.parent.mkdir(exist_ok=True)
        alone.write_bytes(line)
    report = ExportSource(tmp_path / "out").verify(desk.log.trust())
    # What belongs to another entry is not taken for it.
    assert (report.payloads, report.erased) == (2, 1)
    (tmp_path / "out" / large_payload_path("s-1", 3)).write_bytes(second.replace(b"approve", b"decline"))
    (tmp_path / "out" / large_payload_path("s-1", 4)).write_bytes(third)
    report = ExportSource(tmp_path / "out").verify(desk.log.trust())
    assert Kind.PAYLOAD in {fault.kind for fault in report.faults}
