import ast
import re
import unicodedata
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from holdfast.domain.errors import InvalidIdError
from holdfast.domain.ids import (
    CheckpointID,
    CheckpointRef,
    check_id,
    check_session_id,
    check_workflow_id,
    folder_name,
    parse_ref,
    shard,
)
from holdfast.domain.time import timestamp_text

UUID_TEXT = "550e8400-e29b-41d4-a716-446655440000"


def _is_id(text: str) -> bool:
    try:
        check_id("test", text)
    except InvalidIdError:
        return False
    return True


IDS = st.text(min_size=1, max_size=80).filter(_is_id)
#: With sharp s, long s, the Kelvin sign and dotted capital I, which change when case is folded.
TRICKY_IDS = st.text(alphabet="aA@~:4.-/ \u00df\u017f\u212a\u0130", min_size=1, max_size=12).filter(_is_id)
COUNTS = st.integers(1, 10**17)
SELECTORS = st.one_of(
    st.just("latest"),
    COUNTS.map(str),
    st.tuples(st.just("latest") | COUNTS.map(str), COUNTS).map(lambda pair: f"{pair[0]}~{pair[1]}"),
    COUNTS.map(lambda phase: f"phase:{phase}"),
    IDS.map(lambda stage: f"stage:{stage}"),
    COUNTS.map(lambda event: f"event:{event}"),
    st.datetimes(min_value=datetime(1000, 1, 1)).map(
        lambda moment: f"time:{timestamp_text(moment.replace(tzinfo=UTC))}"
    ),
)


def test_a_checkpoint_id_reads_as_workflow_and_sequence():
    moment = datetime(2026, 1, 11, tzinfo=UTC)
    assert str(CheckpointID("WF-2026-001", 42, moment, "sha256:0")) == "WF-2026-001@42"


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("WF-2026-001@42", CheckpointRef("WF-2026-001", sequence=42)),
        ("WF-2026-001@latest", CheckpointRef("WF-2026-001")),
        ("WF@42~2", CheckpointRef("WF", sequence=42, back=2)),
        ("WF@latest~1", CheckpointRef("WF", back=1)),
        ("WF@phase:2", CheckpointRef("WF", phase=2)),
        ("WF@stage:deep research", CheckpointRef("WF", stage="deep research")),
        ("WF@stage:a@b", CheckpointRef("WF", stage="a@b")),
        ("WF@event:123", CheckpointRef("WF", event=123)),
        ("me@example.org@event:0", CheckpointRef("me@example.org", event=0)),
        (
            "WF@time:2026-01-11T14:30:00.500000Z",
            CheckpointRef("WF", moment=datetime(2026, 1, 11, 14, 30, 0, 500_000, tzinfo=UTC)),
        ),
        ("WF@event:x", CheckpointRef("WF@event:x", bare=True)),
        ("WF-2026-001", CheckpointRef("WF-2026-001", bare=True)),
        ("me@example.org", CheckpointRef("me@example.org", bare=True)),
        ("me@example.org@7", CheckpointRef("me@example.org", sequence=7)),
        ("WF@42@latest", CheckpointRef("WF@42")),
        ("@latest@latest", CheckpointRef("@latest")),
        (UUID_TEXT, CheckpointRef(UUID_TEXT, uuid=UUID_TEXT, bare=True)),
        ("550e", CheckpointRef("550e", uuid="550e", bare=True)),
        ("550e8400-e2", CheckpointRef("550e8400-e2", uuid="550e8400-e2", bare=True)),
        ("550e8400e2", CheckpointRef("550e8400e2", uuid="550e8400-e2", bare=True)),
        ("550E8400", CheckpointRef("550E8400", uuid="550e8400", bare=True)),
        ("550", CheckpointRef("550", bare=True)),
        ("2026-01-11", CheckpointRef("2026-01-11", bare=True)),
        (
            ".holdfast/checkpoints/ab/wf/checkpoint_000042.json",
            CheckpointRef(path=".holdfast/checkpoints/ab/wf/checkpoint_000042.json", sequence=42),
        ),
        (
            "C:\\a@latest\\checkpoint_000007.msgpack.zst",
            CheckpointRef(path="C:\\a@latest\\checkpoint_000007.msgpack.zst", sequence=7),
        ),
    ],
)
def test_a_reference_is_read_and_written_back(text, ref):
    assert parse_ref(text) == ref
    assert str(ref) == text


def test_padded_numbers_are_read_as_file_names_show_them():
    assert str(parse_ref("WF@000042~01")) == "WF@42~1"


@pytest.mark.parametrize(
    "text", ["2026-01-11T14:30:00Z", "2026-01-11T15:30:00+01:00", "20260111T143000Z", "2026-01-11T14:30Z"]
)
def test_a_moment_may_be_written_in_any_way_that_names_its_zone(text):
    ref = parse_ref(f"WF@time:{text}")
    assert ref.is_point
    assert str(ref) == "WF@time:2026-01-11T14:30:00.000000Z"


@pytest.mark.parametrize(
    "text",
    ["2026-01-11T14:30:00", "2026-01-11", "noon", "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+02:00"],
)
def test_a_moment_without_its_zone_or_none_at_all_is_refused(text):
    with pytest.raises(InvalidIdError) as refused:
        parse_ref(f"WF@time:{text}")
    assert text[:10] in refused.value.place and "2026-01-11T14:30:00Z" in refused.value.hint


def test_a_checkpoint_is_no_point():
    assert not any(
        parse_ref(text).is_point for text in ("WF", "WF@1", "WF@latest", "WF@phase:1", "WF@stage:x")
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@latest",
        "@42",
        "@event:1",
        "@time:2026-01-11T14:30:00Z",
        " WF@42",
        "WF\n@42",
        "WF@stage: x",
        "x" * 256,
    ],
)
def test_a_reference_without_a_legal_id_is_refused(text):
    with pytest.raises(InvalidIdError):
        parse_ref(text)


@given(IDS | TRICKY_IDS, SELECTORS)
@example("WF@stage:x", "7")
def test_any_reference_with_a_selector_round_trips(workflow_id, selector):
    # A stage name that itself ends in a selector is read as one: the last "@" counts.
    assume(not re.search(r"@(latest|\d+|phase:\d+|stage:.+|event:\d+|time:.+)(~\d+)?$", selector, re.DOTALL))
    text = f"{workflow_id}@{selector}"
    ref = parse_ref(text)
    assert ref.workflow_id == workflow_id
    assert str(ref) == text


@given(IDS | TRICKY_IDS)
def test_parsing_what_was_printed_gives_the_same_reference(text):
    try:
        ref = parse_ref(text)
    except InvalidIdError:
        return
    assert parse_ref(str(ref)) == ref


@given(st.uuids().map(str), st.integers(4, 36))
def test_the_beginning_of_a_uuid_is_recognised(text, length):
    prefix = text[:length]
    assert parse_ref(prefix).uuid == prefix.rstrip("-")


@given(st.uuids())
def test_a_uuid_without_hyphens_is_recognised(uuid: UUID):
    assert parse_ref(uuid.hex).uuid == str(uuid)


@pytest.mark.parametrize(
    "text", ["WF-2026-001", "a/b", "../x", "two words", "héllo", "日本", "C:\\x", "...", "a" * 255]
)
def test_ids_may_hold_whatever_is_readable(text):
    assert check_workflow_id(text) == text
    assert check_session_id(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        " a",
        "a ",
        "a\t",
        "\u00a0a",
        "a\x00b",
        "a\nb",
        "a\x85b",
        "a\u2028b",
        "\ud800",
        "a" * 256,
        5,
    ],
)
def test_other_texts_are_refused_with_the_kind_of_id(text):
    with pytest.raises(InvalidIdError, match="the session id"):
        check_session_id(text)


@pytest.mark.parametrize("text", ["wf-1", "0", "a.b_c-d", "a" * 64])
def test_a_plain_id_is_its_own_folder(text):
    assert folder_name(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "WF-1",
        "a.",
        "con",
        "nul.txt",
        "com1",
        "lpt9.log",
        "-a",
        ".git",
        "_x",
        "a b",
        "a/b",
        "é",
        "a" * 65,
        "a~b",
        "a\n",
    ],
)
def test_any_other_id_gets_a_slug_and_a_hash(text):
    assert re.fullmatch(r"[a-z0-9._-]{1,40}~[0-9a-f]{16}", folder_name(text))


@given(IDS | TRICKY_IDS | st.sampled_from(["con.x y", "COM1.txt", "Nul", "aux. b"]))
def test_a_folder_name_is_safe_everywhere(text):
    name = folder_name(text)
    assert re.fullmatch(r"[a-z0-9][a-z0-9._~-]{0,63}", name)
    assert not name.endswith(".")
    assert not re.fullmatch(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", name)


@given(IDS | TRICKY_IDS, IDS | TRICKY_IDS)
@example("WF", "wf")
@example("straße", "strasse")
@example("\u212a", "k")
@example("é", "e\u0301")
@example("a/b", "a-b")
def test_different_ids_have_folders_that_differ_on_any_file_system(one, other):
    assume(one != other)
    folded = [unicodedata.normalize("NFKC", folder_name(text)).casefold() for text in (one, other)]
    assert folded[0] != folded[1]


@given(IDS)
def test_twins_in_case_or_spelling_have_different_folders(text):
    for twin in {text.upper(), text.lower(), text.swapcase(), unicodedata.normalize("NFKD", text)} - {text}:
        assert folder_name(twin).casefold() != folder_name(text).casefold()


@given(IDS)
def test_a_shard_is_two_hex_digits(text):
    assert re.fullmatch(r"[0-9a-f]{2}", shard(text))


@pytest.mark.parametrize("name", [None, 7, b"WF@1"])
def test_what_is_no_text_names_no_checkpoint(name: Any) -> None:
    with pytest.raises(InvalidIdError, match="named by an id or a text, not by"):
        parse_ref(name)


@pytest.mark.parametrize("text", ["\u2603" * 256, "WF@time:" + "\u2603" * 256])
def test_what_is_no_id_is_quoted_in_whole_characters(text: str) -> None:
    with pytest.raises(InvalidIdError) as refused:
        parse_ref(text)
    quoted = refused.value.place.removesuffix("...")
    assert set(ast.literal_eval(quoted)) == {"\u2603"}
