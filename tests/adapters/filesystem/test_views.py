"""Reading back: what is missing or wrong is told, views are made anew."""

from __future__ import annotations

import shutil

import pytest

from holdfast.adapters.filesystem import layout, manifest, views
from holdfast.adapters.filesystem.manifest import entry_line, summed_line, transition_line
from holdfast.adapters.filesystem.overlay import Files
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.conformance.history import History, blob_name
from holdfast.domain import plainjson
from holdfast.domain.errors import CheckpointCorruptError, CheckpointNotFoundError, ChecksumMismatchError
from holdfast.domain.record import Commit, EventRecord, Head, Removal, Transition
from tests.adapters.filesystem import commits
from tests.values import nested


def test_a_deleted_manifest_is_made_anew(store, fill, root):
    head = fill("wf", 3)
    store.settle()
    before = list(store.entries("wf"))
    (root / layout.workflow_folder("wf") / "manifest.jsonl").unlink()
    again = FilesystemStore.open(str(root), read_only=True)
    assert list(again.entries("wf")) == before and again.head("wf") == head
    assert list(again.workflows()) == ["wf"]
    assert [entry.sequence for entry in again.keyframes("wf")] == [1]


def test_a_damaged_manifest_is_made_anew(store, fill, root):
    fill("wf", 3)
    store.settle()
    path = root / layout.workflow_folder("wf") / "manifest.jsonl"
    path.write_bytes(path.read_bytes().replace(b"agent_complete", b"agent_completE", 1))
    again = FilesystemStore.open(str(root), read_only=True)
    assert [entry.type for entry in again.entries("wf")] == ["agent_complete"] * 3


def test_what_this_process_listed_is_known_without_being_read_again(store, fill, root, monkeypatch):
    fill("wf", 2)
    list(store.entries("wf"))
    fill("wf", 3)
    with monkeypatch.context() as patch:
        patch.setattr(manifest, "parse_line", lambda line: pytest.fail(f"read again: {line!r}"))
        listed = list(store.entries("wf"))
    monkeypatch.setattr(views, "_REMEMBERED_LINES", 2)
    fill("wf", 5)
    assert list(store.entries("wf"))[:5] == listed
    assert list(store.entries("wf")) == list(FilesystemStore.open(str(root), read_only=True).entries("wf"))


def test_a_cut_delta_file_is_told(store, fill, root):
    fill("wf", 3)
    store.settle()
    path = root / layout.workflow_folder("wf") / layout.deltas_name(1)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(CheckpointCorruptError):
        list(store.records("wf", 1, 3))
    assert len(list(store.records("wf", 1, 2))) == 2


def test_a_wrong_keyframe_is_never_returned(store, fill, root):
    fill("wf", 1)
    store.settle()
    path = root / layout.workflow_folder("wf") / layout.keyframe_name(1, "json")
    path.write_bytes(b"x" + path.read_bytes()[1:])
    with pytest.raises(ChecksumMismatchError):
        store.keyframe("wf", 1)
    path.unlink()
    with pytest.raises(CheckpointNotFoundError):
        store.keyframe("wf", 1)
    with pytest.raises(CheckpointNotFoundError):
        store.keyframe("wf", 9)


def test_a_damaged_last_event_is_told(store, fill, root):
    fill("wf", 1)
    store.settle()
    (path,) = root.glob("events/*/wf/*.jsonl")
    for damage in (b"{not json\n", b"[1]\n", b"[" * 100_000 + b"\n", b"{}\n"):
        path.write_bytes(damage)
        with pytest.raises(CheckpointCorruptError, match="last event"):
            FilesystemStore.open(str(root), read_only=True).head("wf")


def deep_event(workflow_id, seq):
    """Write an event that is nested as deep as a commit takes it."""
    told = plainjson.loads_object(commits.event(workflow_id, seq).data)
    line = plainjson.dumps({**told, "data": {"deep": nested(9_000)}}) + b"\n"
    return EventRecord(seq, told["ts"], told["hash"], line)


def test_a_last_event_may_be_nested_as_deep_as_a_commit_takes_it(store, fill, root):
    head = fill("wf", 1)
    deep = Commit("wf", head, events=(deep_event("wf", head.event_seq + 1),))
    only = Commit("only-events", Head(), events=(deep_event("only-events", 1),))
    assert store.commit([deep, only]) == [None, None]
    store.settle()
    store.close()
    again = FilesystemStore.open(str(root), background=False)
    head = again.head("wf")
    assert again.commit([Commit("wf", head, events=(commits.event("wf", head.event_seq + 1),))]) == [None]
    assert [views.event_seq(line) for line in again.events("wf")] == [1, 2, 3]
    assert set(again.workflows()) == {"wf", "only-events"}
    again.close()


def fill_days(store, count):
    """Commit events of three days, the later ones longer."""
    head = Head()
    for seq in range(1, count + 1):
        day = f"2026-01-{11 + 3 * (seq - 1) // count}T14:30:00.000000Z"
        event = commits.event("wf", seq, day, data={"said": "x" * seq})
        assert store.commit([Commit("wf", head, events=(event,))]) == [None]
        head = Head(event_seq=seq, event_hash=f"h{seq}")


@pytest.mark.parametrize("reach", [1, 100, 1_000, 100_000])
@pytest.mark.parametrize("is_settled", [False, True])
def test_the_last_events_are_those_that_all_end_with(store, monkeypatch, reach, is_settled):
    monkeypatch.setattr(views, "_TAIL_BYTES", reach)
    fill_days(store, 60)
    if is_settled:
        store.settle()
    lines = list(store.events("wf"))
    assert [views.event_seq(line) for line in lines] == list(range(1, 61))
    for after in range(62):
        assert list(store.events("wf", after=after)) == lines[after:]


def test_for_the_last_events_a_long_journal_is_not_read(store, root, monkeypatch):
    monkeypatch.setattr(views, "_TAIL_BYTES", 1_000)
    fill_days(store, 300)
    store.settle()
    read, count = Files.read, [0]

    def counting(self, path, offset=0, length=None):
        found = read(self, path, offset, length)
        count[0] += len(found or b"") if "events_" in path else 0
        return found

    monkeypatch.setattr(Files, "read", counting)
    assert len(list(store.events("wf", after=298))) == 2
    assert 0 < count[0] <= 5_000
    # A damaged line is no reason to stop before what is asked for.
    last = max(root.glob("events/*/wf/*.jsonl"))
    damaged = last.read_bytes().splitlines(keepends=True)
    damaged[-3] = b"{not json\n"
    last.write_bytes(b"".join(damaged))
    assert list(FilesystemStore.open(str(root), read_only=True).events("wf", after=297)) == damaged[-3:]


def test_a_workflow_is_listed_by_its_first_record_however_deep_that_is(store, fill, root):
    fill("wf", 1)
    store.settle()
    folder = root / layout.workflow_folder("wf")
    (folder / "manifest.jsonl").unlink()
    path = folder / layout.deltas_name(1)
    deep = b'"ops":' + plainjson.dumps(nested(9_000)) + b',"checksum"'
    path.write_bytes(path.read_bytes().replace(b'"checksum"', deep))
    # Its events name it too.
    shutil.rmtree(root / layout.events_folder("wf"))
    assert list(FilesystemStore.open(str(root), read_only=True).workflows()) == ["wf"]


def test_a_workflow_of_events_only_is_listed(store):
    store.commit([Commit("only-events", Head(), events=(commits.event("only-events", 1),))])
    assert list(store.workflows()) == ["only-events"]
    store.settle()
    assert list(store.workflows()) == ["only-events"]


def test_a_folder_that_holds_another_workflow_is_not_believed(store, fill, root):
    fill("wf", 1)
    store.settle()
    (root / layout.workflow_folder("wf")).rename(root / layout.workflow_folder("wf").replace("wf", "fw"))
    assert list(FilesystemStore.open(str(root), read_only=True).workflows()) == ["wf"]


def test_a_manifest_that_names_no_text_hides_no_other_workflow(store, fill, root):
    for workflow_id in ("wf", "wg"):
        fill(workflow_id, 1)
    store.settle()
    path = root / layout.manifest_path(layout.workflow_folder("wf"))
    path.write_bytes(summed_line({"manifest": 1, "wf": 5}))
    assert set(FilesystemStore.open(str(root), read_only=True).workflows()) == {"wf", "wg"}


def test_a_large_file_is_mapped(store, monkeypatch):
    monkeypatch.setattr(store._disk, "map_bytes", 1000)
    data = b"z" * 5000
    store.commit([Commit("wf", Head(), blobs={commits.sha256(data): data})])
    assert store.blob(commits.sha256(data)) == data
    store.settle()
    assert store.blob(commits.sha256(data)) == data


def test_an_event_line_tells_its_sequence():
    assert views.event_seq(b'{"seq":12,"ts":"x"}\n') == 12
    assert views.event_seq(b"garbage\n") > 10**9


@pytest.mark.parametrize("damage", [b"", b"x", None])
def test_a_commit_mends_the_manifest_before_it_adds_to_it(store, fill, root, damage):
    fill("wf", 3)
    store.settle()
    store.close()
    path = root / layout.workflow_folder("wf") / "manifest.jsonl"
    path.unlink() if damage is None else path.write_bytes(damage)
    again = FilesystemStore.open(str(root), background=False)
    commit = commits.checkpoint("wf", again.head("wf"))
    assert again.commit([commit]) == [None]
    again.close()
    last = FilesystemStore.open(str(root), read_only=True)
    assert [entry.sequence for entry in last.entries("wf")] == [1, 2, 3, 4]
    assert len(list(last.records("wf", 1, 4))) == 4


@pytest.mark.parametrize("sequence", [2, 3])
def test_a_manifest_that_lacks_a_line_hides_no_checkpoint(store, fill, root, sequence):
    for session, group in (("s-1", 1), ("s-2", 1), ("s-3", 1), ("s-4", 3)):
        fill("wf", 1, group, session=session)
    store.settle()
    store.close()
    path = root / layout.workflow_folder("wf") / "manifest.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if not line.startswith(b'{"seq":%d,' % sequence)))
    again = FilesystemStore.open(str(root), read_only=True)
    assert [entry.sequence for entry in again.entries("wf")] == [1, 2, 3, 4]
    assert len(list(again.records("wf", 1, 4))) == 4
    assert [finding.problem for finding in again.check()]
    again.close()


@pytest.mark.parametrize("lines", [1, 2, 3])
def test_a_manifest_that_was_cut_between_lines_hides_no_checkpoint(store, fill, root, lines):
    fill("wf", 3)
    fill("wf", 2, group=3)
    store.settle()
    store.close()
    path = root / layout.workflow_folder("wf") / "manifest.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-lines]))
    again = FilesystemStore.open(str(root), background=False)
    assert again.head("wf").sequence == 5
    assert [entry.sequence for entry in again.entries("wf")] == [1, 2, 3, 4, 5]
    assert again.commit([commits.checkpoint("wf", again.head("wf"), 3)]) == [None]
    assert again.head("wf").sequence == 6 and len(list(again.records("wf", 1, 6))) == 6
    again.close()


def test_a_manifest_that_was_written_anew_is_not_taken_for_more_of_the_old_one(store, root):
    """The same line at the same place as before: only the first line tells that it is another manifest."""
    other = FilesystemStore.open(str(root))
    history, pin = History(store, "W"), Transition(2, "active", 0, pinned=True)
    folder, files = layout.workflow_folder("W"), store._source.files
    path, line = layout.manifest_path(folder), transition_line(pin)
    history.commit(keyframe=b"one", label="y" * 600)
    history.commit()
    history.commit()
    history.commit(is_checkpoint=False, transitions=(pin,))
    place = files.size(path) - len(line)
    assert list(other.entries("W")) == list(store.entries("W"))
    history.commit(is_checkpoint=False, transitions=(Transition(2, "active"),))
    store.remove("W", Removal((1,)))
    record = history.draft(label="x").record
    assert record is not None
    with_one_letter = len(entry_line(record.entry, files.size(f"{folder}/{layout.deltas_name(1)}")))
    history.commit(label="x" * (place - files.size(path) - with_one_letter + 1))
    history.commit(is_checkpoint=False, transitions=(pin,))
    assert files.read(path, place) == line
    assert list(other.entries("W")) == list(store.entries("W"))
    assert other.head("W") == store.head("W") == history.head
    other.close()


def test_a_large_blob_that_is_not_in_its_file_yet_is_read_all_the_same(store, monkeypatch):
    monkeypatch.setattr(store._disk, "map_bytes", 10)
    data = b"b" * 100
    history = History(store, "W")
    history.commit(blobs={blob_name(data): data})
    # Applied in part, as a reader may find it.
    path = layout.blob_path(blob_name(data))
    store._disk.make_folder(path.rpartition("/")[0])
    handle = store._disk.open(path, write=True, create=True)
    store._disk.write(handle, data[:40], 0)
    store._disk.close(handle)
    assert store.blob(blob_name(data)) == data
