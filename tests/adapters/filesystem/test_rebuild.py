"""Views made anew say what they said before."""

from __future__ import annotations

import hashlib
import shutil

import pytest

import holdfast
from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.rebuild import read_sums, split_records
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain import plainjson
from holdfast.domain.record import Commit, EventRecord, Transition
from tests.adapters.filesystem import commits
from tests.values import nested


def test_status_and_removals_come_back_from_the_events(store, fill, root):
    head = fill("wf", 3)
    status = commits.event(
        "wf",
        4,
        type="CHECKPOINT_STATUS",
        cp_seq=2,
        data={"status": "failed", "retry_count": 1, "pinned": True},
    )
    pruned = commits.event("wf", 5, type="CHECKPOINTS_PRUNED", data={"sequences": [1, 77]})
    transition = Transition(2, "failed", 1, pinned=True)
    assert store.commit([Commit("wf", head, events=(status, pruned), transitions=(transition,))]) == [None]
    store.settle()
    (root / layout.workflow_folder("wf") / "manifest.jsonl").unlink()
    first, second, _ = FilesystemStore.open(str(root), read_only=True).entries("wf")
    assert first.pruned
    assert (second.status, second.retry_count, second.pinned) == ("failed", 1, True)


def test_a_deep_event_tells_of_a_status_like_any_other(store, fill, root):
    head = fill("wf", 1)
    told = {"type": "CHECKPOINT_STATUS", "cp_seq": 1, "data": {"status": "failed", "deep": nested(9_000)}}
    seq = head.event_seq + 1
    line = plainjson.dumps(plainjson.loads_object(commits.event("wf", seq).data) | told) + b"\n"
    transition = Transition(1, "failed")
    event = EventRecord(seq, commits.TIMESTAMP, f"h{seq}", line)
    assert store.commit([Commit("wf", head, events=(event,), transitions=(transition,))]) == [None]
    store.settle()
    (root / layout.workflow_folder("wf") / "manifest.jsonl").unlink()
    [entry] = FilesystemStore.open(str(root), read_only=True).entries("wf")
    assert entry.status == "failed"


def test_events_of_checkpoints_that_were_lost_say_nothing_of_those_in_their_place(tmp_path):
    folder = tmp_path / layout.workflow_folder("W")
    with holdfast.open(str(tmp_path)) as service:
        for number in range(6):
            service.create_checkpoint("W", {"n": number})
        for number in range(1, 5):
            service.delete(f"W@{number}")
    shutil.rmtree(folder)
    with holdfast.open(str(tmp_path)) as service:
        service.create_checkpoint("W", {"n": "new"})
    (folder / "manifest.jsonl").unlink()
    with holdfast.open(str(tmp_path)) as service:
        state = service.load_latest("W")
        assert state is not None and state.context == {"n": "new"}


def test_a_keyframe_nobody_vouches_for_is_left_out(store, fill, root):
    fill("wf", 1)
    store.settle()
    folder = root / layout.workflow_folder("wf")
    (folder / layout.keyframe_name(7, "json")).write_bytes(b"{}")
    (folder / "manifest.jsonl").unlink()
    assert [k.sequence for k in FilesystemStore.open(str(root), read_only=True).keyframes("wf")] == [1]


def test_what_was_kept_of_a_pruned_workflow_is_restored_without_its_manifest(tmp_path):
    """The keyframe that it builds on belongs to a checkpoint whose own record is gone."""
    root, state = tmp_path / "store", {"n": 0, "text": ""}
    with holdfast.open(str(root), retain=False) as service:
        for number in range(120):
            state = {"n": number, "text": f"{number:04d}" * 1000}
            service.create_checkpoint("wf", state)
        service.flush()
        service.prune_checkpoints("wf", retain_count=3, retain_days=0)
        kept = [meta.id.sequence for meta in service.list_checkpoints("wf")]
    (root / layout.workflow_folder("wf") / "manifest.jsonl").unlink()
    with holdfast.open(str(root), read_only=True) as service:
        assert [meta.id.sequence for meta in service.list_checkpoints("wf")] == kept
        for sequence in kept:
            assert service.restore_checkpoint(f"wf@{sequence}").context["n"] == sequence - 1
            assert service.validate_checkpoint(f"wf@{sequence}").valid


@pytest.mark.parametrize(
    "line",
    [
        b'["CHECKPOINT_STATUS"]',
        b"[" * 100_000 + b"CHECKPOINT_STATUS",
        b'{"type":"CHECKPOINT_STATUS"',
        b'{"type":"CHECKPOINT_STATUS"}',
        b'{"type":"CHECKPOINT_STATUS","seq":"x","cp_seq":1}',
        b'{"type":"CHECKPOINT_STATUS","seq":9,"cp_seq":[]}',
        b'{"type":"CHECKPOINT_STATUS","seq":9,"cp_seq":1,"data":[]}',
        b'{"type":"CHECKPOINT_STATUS","seq":9,"cp_seq":1,"data":{"status":3}}',
        b'{"type":"CHECKPOINT_STATUS","seq":9,"cp_seq":1,"data":{"retry_count":"many"}}',
        b'{"type":"CHECKPOINTS_PRUNED","seq":9,"data":{"sequences":3}}',
    ],
)
def test_a_damaged_line_of_the_events_tells_nothing_of_a_status(store, fill, root, line):
    fill("wf", 2)
    store.settle()
    (root / layout.workflow_folder("wf") / "manifest.jsonl").unlink()
    [events] = (root / layout.events_folder("wf")).glob("events_*.jsonl")
    events.write_bytes(line + b"\n" + events.read_bytes())
    found = FilesystemStore.open(str(root), read_only=True).entries("wf")
    assert [(one.status, one.retry_count, one.pruned) for one in found] == [("active", 0, False)] * 2


@pytest.mark.parametrize(
    "header",
    [
        b'[{"checkpoint_id":1}]',
        b"[" * 100_000 + b'"checkpoint_id"',
        b'{"checkpoint_id":3,"header":3}',
        b'{"checkpoint_id":3,"blobs":[1,{}]}',
        b'{"checkpoint_id":3,"blobs":3}',
    ],
)
def test_a_keyframe_whose_header_somebody_wrote_lists_no_blobs(store, fill, root, header):
    fill("wf", 1)
    store.settle()
    folder = root / layout.workflow_folder("wf")
    data = b'{\n"header": ' + header + b",\n}\n"
    [known] = folder.glob("checkpoint_000001.json")
    known.write_bytes(data)
    (folder / "SHA256SUMS").write_text(f"{hashlib.sha256(data).hexdigest()}  {known.name}\n")
    (folder / "manifest.jsonl").unlink()
    [keyframe] = FilesystemStore.open(str(root), read_only=True).keyframes("wf")
    assert keyframe.blobs == ()


def record(**fields):
    return commits.line(**{"id": "u", "ts": "t", "checksum": "sha256:0"} | fields)


def test_a_record_with_a_payload_is_one_record():
    first = record(seq=1, payload={"len": 5}) + b"ab\ncd\n"
    second = record(seq=2)
    found = list(split_records(first + second))
    assert [(at, length) for at, length, _ in found] == [(0, len(first)), (len(first), len(second))]


def test_a_record_may_be_nested_as_deep_as_a_commit_takes_it():
    first, last = record(seq=1), record(seq=3)
    deep = first.replace(b'"seq":1', b'"seq":2,"ops":' + plainjson.dumps(nested(9_000, 1)))
    found = list(split_records(first + deep + last))
    assert [header["seq"] for _, _, header in found] == [1, 2, 3]


@pytest.mark.parametrize("is_group_older", [False, True])
def test_a_manifest_that_is_made_anew_cuts_no_deep_record_away(tmp_path, is_group_older):
    # Where a state is small, one that changes much of it begins a new group.
    text = "" if is_group_older else "x" * 30_000
    with holdfast.open(str(tmp_path)) as service:
        service.create_checkpoint("W", {"n": 1, "text": text})
        for number in (2, 3):
            service.create_checkpoint("W", {"n": number, "text": text, "deep": nested(1_500, 1)})
        service.create_checkpoint("W", {"n": 4, "text": text, "deep": 0})
        before = [one.id for one in service.list_checkpoints("W")]
    folder = tmp_path / layout.workflow_folder("W")
    records = {path.name: path.read_bytes() for path in folder.glob("*.deltas.jsonl")}
    assert len(records) == 1 + is_group_older
    (folder / "manifest.jsonl").unlink()
    with holdfast.open(str(tmp_path)) as service:
        service.append_event("W", "TICK")
        assert [one.id for one in service.list_checkpoints("W")] == before
        state = service.load_latest("W")
        assert state is not None and state.context["n"] == len(before)
    assert {path.name: path.read_bytes() for path in folder.glob("*.deltas.jsonl")} == records


@pytest.mark.parametrize(
    "rest",
    [
        b"{broken\n",
        b"[1]\n",
        b"[" * 100_000 + b"\n",
        record(seq=3)[:-1],
        record(seq=3, payload={"len": 99}) + b"short\n",
        record(seq="3"),
        record(seq=3, ts=4),
        record(seq=3, phase="1"),
        record(seq=3, blobs="a"),
        record(seq=3, payload={"len": -400}),
        record(seq=3, payload=[1]),
    ],
)
def test_what_is_no_whole_record_ends_the_file(rest):
    assert len(list(split_records(record(seq=1) + rest))) == 1


def test_sums_are_read_like_sha256sum_does():
    assert read_sums(b"aa  f one\nbb  g\nnonsense\n") == {"f one": "aa", "g": "bb"}
