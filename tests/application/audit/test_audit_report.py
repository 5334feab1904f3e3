from __future__ import annotations

import csv
import hashlib
import io
import json
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.crypto.signing import verify
from holdfast.application.audit.audit_event import PayloadState
from holdfast.application.audit.audit_report import (
    COLUMNS,
    LISTING,
    STATEMENT,
    Reported,
    Statement,
    check_statement,
    entry_fields,
    folder_files,
    listing_of,
    read_reported,
    report_fields,
    safe_cell,
    sign_statement,
    to_csv,
    to_jsonl,
    write_bundle,
)
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import (
    CheckpointCorruptError,
    ChecksumMismatchError,
    InvalidStateError,
    KeyDestroyedError,
    KeyUnavailableError,
)
from holdfast.domain.treehead import parse_head
from tests.application.told import Told, day_at_work, entry
from tests.trails import LOG_KEY, WITNESS_KEY

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1")


def rows(told: Told) -> list[dict[str, str]]:
    text = b"".join(to_csv(told.reported())).decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_the_fields_of_an_entry_are_those_of_its_line_in_their_order():
    for line, one in zip((told := day_at_work()).lines, told.reported(), strict=True):
        assert list(entry_fields(one.entry).items()) == list(json.loads(line).items())


def test_json_lines_have_the_stored_fields_and_the_payload():
    told = day_at_work()
    read = [json.loads(line) for line in to_jsonl(told.reported())]
    assert len(read) == len(told.lines)
    assert read[2]["payload"]["rationale"] == "the offers differ in kind"
    for line, fields in zip(told.lines, read, strict=True):
        fields.pop("payload", None)
        assert fields == json.loads(line)


def test_an_erased_payload_is_called_erased_in_every_format():
    told = day_at_work()
    del told.payloads["s-1", 3]
    assert json.loads(list(to_jsonl(told.reported()))[2])["payload"] == "erased"
    assert rows(told)[2]["payload"] == "erased"
    assert rows(told)[2]["rationale"] == ""


def test_a_payload_that_is_not_the_committed_one_is_not_shown():
    told = day_at_work()
    told.payloads["s-1", 3] = told.payloads["s-1", 3].replace(b"differ", b"agree!")
    assert told.reported()[2] == Reported(told.reported()[2].entry, None, PayloadState.DAMAGED)


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        (KeyUnavailableError("no key"), PayloadState.SEALED),
        (KeyDestroyedError("gone"), PayloadState.ERASED),
        (ChecksumMismatchError("another"), PayloadState.DAMAGED),
        (CheckpointCorruptError("no payload"), PayloadState.SEALED),
    ],
)
def test_what_cannot_be_opened_is_told_apart(fault, state):
    def refuse(entry, stored):
        raise fault

    told = day_at_work()
    assert list(read_reported(told.lines, told.read_payload, refuse))[2].state is state


def test_a_line_that_is_no_entry_stops_the_report():
    told = day_at_work()
    told.lines[4] = told.lines[4].replace(b"success", b"failure")
    with pytest.raises(ChecksumMismatchError):
        told.reported()


def test_csv_has_stable_columns_and_one_row_for_each_entry():
    told = day_at_work()
    found = rows(told)
    assert len(found) == len(told.lines)
    assert tuple(found[0]) == COLUMNS
    assert found[2]["alternatives"] == "ask three; ask nobody"
    assert found[2]["confidence"] == "0.9"
    assert found[10]["clock"] == "2026-01-01T14:30:00.000000Z"


def test_csv_of_nothing_is_its_header():
    assert b"".join(to_csv([])) == ",".join(COLUMNS).encode() + b"\r\n"


def test_csv_ends_lines_and_quotes_as_rfc_4180_says():
    told = Told().add(entry(1, payload={"description": 'two "words", and\na line'}))
    data = b"".join(to_csv(told.reported()))
    assert b'"two ""words"", and\na line"' in data
    assert data.count(b"\r\n") == 3 and data.endswith(b"\r\n")


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_is_a_formula(text):
    told = Told().add(entry(1, payload={"description": text}, agent=text.strip(), workflow_id=text.strip()))
    assert rows(told)[1]["description"] == "'" + text
    assert not any(cell.startswith(FORMULAS[:4]) for row in rows(told) for cell in row.values())


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back_from_a_cell_with_at_most_a_quote_before_it(text):
    told = Told().add(entry(1, payload={"description": text, "rationale": text}))
    shown = rows(told)[1]["rationale"]
    assert shown in (text, "'" + text)
    assert safe_cell(shown) == shown


def test_a_statement_is_never_taken_for_a_tree_head():
    statement = Statement("example.com/audit", "session s-1", 7, "0" * 64)
    with pytest.raises(CheckpointCorruptError):
        parse_head(statement.text())
    assert not statement.text().split("\n")[1].isdecimal()


@pytest.mark.parametrize("scope", ["", "two\nlines"])
def test_a_statement_has_one_line_for_its_scope(scope):
    with pytest.raises(InvalidStateError):
        Statement("example.com/audit", scope, 7, "0" * 64).text()


def test_a_statement_holds_for_its_listing_and_for_no_other():
    listing = listing_of({"a.txt": "0" * 64})
    signed = sign_statement(
        Statement("example.com/audit", "session s-1", 7, hashlib.sha256(listing).hexdigest()), LOG_KEY
    )
    assert "about session s-1" in check_statement(signed, listing, [LOG_KEY.key], verify)
    with pytest.raises(ChecksumMismatchError, match="other files"):
        check_statement(signed, listing + b"x", [LOG_KEY.key], verify)
    with pytest.raises(ChecksumMismatchError):
        check_statement(signed.replace(b"s-1", b"s-2"), listing, [LOG_KEY.key], verify)
    with pytest.raises(ChecksumMismatchError):
        check_statement(signed, listing, [WITNESS_KEY.key], verify)


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../up", "back\\slash", "new\nline"])
def test_a_listing_takes_no_name_that_leads_elsewhere(name):
    with pytest.raises(InvalidStateError):
        listing_of({name: "0" * 64})


def bundle(files, signer=LOG_KEY) -> bytes:
    target = io.BytesIO()
    write_bundle(target, files, ("example.com/audit", "session s-1", 7), signer)
    return target.getvalue()


def test_a_bundle_holds_the_files_their_listing_and_a_signed_statement(tmp_path):
    (tmp_path / "export" / "tile").mkdir(parents=True)
    (tmp_path / "export" / "tile" / "000").write_bytes(b"tile")
    files = {**folder_files(tmp_path / "export", "export/"), "report.csv": b"a,b\r\n"}
    with zipfile.ZipFile(io.BytesIO(bundle(files))) as archive:
        assert archive.testzip() is None
        names = ["export/tile/000", "report.csv", LISTING, STATEMENT, "statement.vkey"]
        assert archive.namelist() == names
        listing = archive.read(LISTING)
        for name in names[:2]:
            assert f"{hashlib.sha256(archive.read(name)).hexdigest()}  {name}\n".encode() in listing
        text = check_statement(archive.read(STATEMENT), listing, [LOG_KEY.key], verify)
    assert "tree 7" in text


def test_equal_files_give_equal_bundles_whatever_their_times(tmp_path):
    contents = {"b.txt": b"two" * 1000, "a.txt": b"one"}
    paths = {}
    for name, data in reversed(contents.items()):
        (tmp_path / name).write_bytes(data)
        paths[name] = tmp_path / name
    assert bundle(contents) == bundle(paths)
    with zipfile.ZipFile(io.BytesIO(bundle(contents))) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_a_bundle_without_a_key_has_no_statement():
    with zipfile.ZipFile(io.BytesIO(bundle({"a.txt": b"one"}, None))) as archive:
        assert archive.namelist() == ["a.txt", LISTING]


def test_links_are_not_followed_into_a_bundle(tmp_path):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "link").symlink_to(tmp_path / "secret")
    assert folder_files(tmp_path / "export", "export/") == {}


def test_what_a_verification_found_can_be_written_as_json():
    told = day_at_work()
    fields = json.loads(json.dumps(report_fields(told.verify(signed=6))))
    assert fields["level"] == "signed head" and fields["tail"] == 5 and fields["faults"] == []
    told.lines[3] = told.lines[3].replace(b"success", b"failure")
    broken = report_fields(told.verify())
    assert broken["verdict"] == "failed" and broken["faults"][0]["leaf"] == 3


def test_the_reference_of_an_entry_is_its_session_and_number():
    told = Told().add(entry(1, AuditType.CHECKPOINT_CREATED))
    assert [one.reference for one in told.reported()] == ["s-1#1", "s-1#2"]
