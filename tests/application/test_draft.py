"""A drafted checkpoint: its record as the format says, its entry and the base of the next one in step."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.application.base import Base
from holdfast.application.commands import CreateCheckpoint
from holdfast.application.commit_queue import Lineage
from holdfast.application.draft import Draft, Drafting, Subject
from holdfast.application.kit import Kit
from holdfast.application.snapshot import changes, take
from holdfast.domain import plainjson
from holdfast.domain.checkpoint import DEFAULT_MAX_RETRIES, CheckpointType
from holdfast.domain.ids import GENESIS
from holdfast.domain.record import Head
from tests.application.services import make_kit


def command(fields: dict[str, Any], **more: Any) -> CreateCheckpoint:
    return CreateCheckpoint("W", fields, CheckpointType.AGENT_COMPLETE, **more)


def first(kit: Kit, fields: dict[str, Any]) -> Draft:
    snapshot = take(fields, kit.packer)
    subject = Subject(command(fields), None, None)
    return Drafting(kit, subject, Base(Head(), Lineage()), snapshot, snapshot.size).whole()


def following(kit: Kit, base: Base, fields: dict[str, Any], **more: Any) -> Draft:
    assert base.snapshot is not None
    snapshot = take(fields, kit.packer, base.snapshot)
    subject = Subject(command(fields, **more), None, kit.packer.pack({"p": 1}))
    drafting = Drafting(kit, subject, base, snapshot, snapshot.size)
    return drafting.change(changes(base.snapshot, snapshot, kit.packer), is_bare=base.is_bare)


def line(draft: Draft) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(draft.record.data)
    return fields


def test_the_first_checkpoint_is_whole() -> None:
    draft = first(make_kit(), {"a": 1})
    fields = line(draft)
    assert draft.keyframe is not None
    assert fields["full"] == f"sha256:{draft.keyframe.entry.sha256}"
    assert (fields["seq"], fields["parent"]) == (1, GENESIS)
    assert "checksum" not in json.loads(draft.keyframe.data)["header"]["checkpoint_id"]
    assert (draft.base.group, draft.base.weight) == (1, 0)


def test_the_fields_stand_in_the_order_of_the_format() -> None:
    kit = make_kit()
    # An event came between.
    base = replace(first(kit, {"a": 1}).base, head=Head(1, "sha256:1", 2, "sha256:2"))
    draft = following(
        kit,
        base,
        {"a": 2},
        max_retries=5,
        phase=2,
        stage_id="research",
        agent_id="worker-1",
        agent_version="2.1.0",
        session_id="s-1",
        parent_uuid="u",
        dependent_uuids=("d",),
        resume_handler="app.resume",
    )
    fields = line(draft)
    assert list(fields) == [
        *(
            "seq",
            "id",
            "wf",
            "ts",
            "stage",
            "agent",
            "agent_version",
            "session",
            "parent_id",
        ),
        *("phase", "size", "events", "event_seq", "handler", "max_retries", "deps"),
        *("agent_state", "ops", "checksum"),
    ]
    assert fields["ops"] == [{"op": "set", "path": ["a"], "value": 2}]
    assert (fields["events"], fields["event_seq"], fields["max_retries"]) == (2, 3, 5)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
GIVEN = st.fixed_dictionaries(
    {},
    optional={
        "stage_id": TEXTS,
        "agent_id": TEXTS,
        "agent_version": TEXTS,
        "session_id": TEXTS,
        "forked_from": st.fixed_dictionaries({"wf": TEXTS, "seq": st.integers(1, 9)}),
        "parent_uuid": TEXTS,
        "phase": st.integers(),
        "resume_handler": TEXTS,
        "max_retries": st.integers(0, 9),
        "dependent_uuids": st.tuples(TEXTS),
    },
)
#: Fields of a record by how a command has them, in the order of the format.
ORDER = {
    **{"stage_id": "stage", "agent_id": "agent", "agent_version": "agent_version", "session_id": "session"},
    **{"forked_from": "forked_from", "parent_uuid": "parent_id", "phase": "phase"},
    **{"resume_handler": "handler", "max_retries": "max_retries", "dependent_uuids": "deps"},
}


@given(GIVEN)
def test_a_record_is_written_as_an_encoder_of_objects_would(said: dict[str, Any]) -> None:
    kit = make_kit()
    data = following(kit, first(kit, {"a": 1}).base, {"a": 2}, **said).record.data
    fields = plainjson.loads(data)
    assert plainjson.dumps(fields) + b"\n" == data
    usual = said.get("max_retries") == DEFAULT_MAX_RETRIES
    expected = {
        ORDER[name]: said[name] for name in ORDER if name in said and (name != "max_retries" or not usual)
    }
    told = {name: value for name, value in fields.items() if name in ORDER.values()}
    assert list(told) == list(expected)
    assert {**told, "deps": tuple(told.get("deps", ()))} == {"deps": (), **expected}


def test_what_is_usual_is_left_out() -> None:
    kit = make_kit()
    fields = line(following(kit, first(kit, {"a": 1}).base, {"a": 2}))
    assert fields["event_seq"] == 2 and not {"events", "max_retries", "stage", "deps"} & set(fields)


def test_record_entry_event_and_next_base_agree() -> None:
    kit = make_kit()
    draft = following(kit, first(kit, {"a": 1}).base, {"a": 2})
    fields, commit = line(draft), draft.commit()
    assert commit.record is not None
    entry = commit.record.entry
    assert fields["checksum"] == entry.checksum == draft.id.checksum == draft.base.head.checksum
    assert fields["id"] == entry.uuid == draft.id.uuid
    assert (entry.length, entry.state_bytes) == (len(commit.record.data), fields["size"])
    [event] = commit.events
    created = json.loads(event.data)
    assert (created["type"], created["cp_seq"], created["data"]) == ("CHECKPOINT_CREATED", 2, {})
    assert draft.base.head == Head(2, entry.checksum, event.seq, event.hash)
    assert draft.base.id == draft.id


def test_large_values_leave_the_operations_and_are_named_in_the_record() -> None:
    kit = make_kit(blob_threshold_bytes=100)
    draft = following(kit, first(kit, {"a": 1}).base, {"a": 1, "long": "x" * 200, "short": "y" * 50})
    fields = line(draft)
    assert fields["blobs"] == list(draft.blobs)
    assert draft.record.entry.blobs == tuple(draft.blobs)
    assert [op["value"] if isinstance(op["value"], str) else op["value"]["$hf"] for op in fields["ops"]] == [
        "blob",
        "y" * 50,
    ]


def test_a_keyframe_becomes_due_and_the_next_records_belong_to_it() -> None:
    kit = make_kit()
    draft = first(kit, {"n": 0})
    for number in range(1, 100):
        draft = following(kit, draft.base, {"n": number})
        if draft.due is not None:
            break
        assert (draft.record.entry.group, draft.base.group) == (1, 1)
    assert draft.due is not None and draft.due.sequence == draft.id.sequence
    assert draft.due.checksum == draft.id.checksum
    assert draft.record.entry.group == 1
    assert (draft.base.group, draft.base.weight) == (draft.id.sequence, 0)
    after = following(kit, draft.base, {"n": 1000})
    assert after.record.entry.group == draft.id.sequence
