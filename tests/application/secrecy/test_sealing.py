"""What an encrypted store keeps, and everything that somebody who writes to it may try."""

import hashlib
from dataclasses import replace

import pytest

from holdfast import Erased, Personal
from holdfast.adapters.formats import Formats
from holdfast.application.secrecy import keyring as rings
from holdfast.application.secrecy.sealing import Vault, read_payload, readable_data
from holdfast.domain import plainjson
from holdfast.domain.errors import (
    CheckpointConflictError,
    ChecksumMismatchError,
    KeyDestroyedError,
    KeyUnavailableError,
    SealBrokenError,
    UnsupportedTypeError,
)
from holdfast.domain.event import Event
from holdfast.domain.ids import GENESIS
from holdfast.domain.time import parse_timestamp
from holdfast.domain.trail import decode_entry
from tests.encrypted import (
    MARKER,
    NEW_KEY,
    destroy,
    encrypted_store,
    latest,
    rechained,
    rehashed,
    service,
    vault,
    vault_of,
)

LARGE = MARKER * 4000


def states(count):
    return [
        {"n": n, "note": f"{MARKER} {n}", "large": LARGE if n else "", "list": list(range(n))}
        for n in range(count)
    ]


def fill(store, workflow_id="W", count=3):
    with service(store) as opened:
        for state in states(count):
            opened.create_checkpoint(
                workflow_id,
                state,
                agent_id="a",
                agent_state={"kept": MARKER},
                stage_state={"kept": MARKER},
                resume_handler=MARKER,
                agent_version=MARKER,
            )
        opened.append_event(workflow_id, "TOLD", {"what": MARKER}, cost={"usd": MARKER})
        opened.record_decision(workflow_id, f"{MARKER} decided", rationale=MARKER)


def everything(store):
    """Give every byte that a store in memory holds."""
    workflows = store._workflows.values()
    pieces = [data for workflow in workflows for data in workflow.records.values()]
    pieces += [keyframe.data for workflow in workflows for keyframe in workflow.keyframes.values()]
    pieces += [event.data for workflow in workflows for event in workflow.events]
    pieces += [repr(entry).encode() for workflow in workflows for entry in workflow.entries.values()]
    pieces += list(store._blobs.values()) + list(store._files.values())
    return b"\0".join([*pieces, *(record.data + record.payload for record in store._leaves)])


def restored(store, name="W@latest"):
    with service(store) as opened:
        return opened.restore_checkpoint(name)


def test_what_was_sealed_comes_back_and_is_nowhere_in_the_clear():
    store = encrypted_store()
    fill(store)
    assert MARKER.encode() not in everything(store)
    with service(store) as opened:
        assert [opened.restore_checkpoint(f"W@{n + 1}").context for n in range(3)] == states(3)
        told = opened.get_by_id("W@2")
        assert told is not None
        assert (told.agent_state, told.stage_state) == ({"kept": MARKER}, {"kept": MARKER})
        assert (told.resume_handler, told.agent_version) == (MARKER, MARKER)
        assert [event.data for event in opened.events("W", type="TOLD")] == [{"what": MARKER}]
        assert [event.cost for event in opened.events("W", type="TOLD")] == [{"usd": MARKER}]
        assert all(opened.validate_checkpoint(f"W@{n + 1}") for n in range(3))
        assert opened.diff_checkpoints("W@1", "W@2")


def test_a_store_opened_again_goes_on_where_it_stood():
    store = encrypted_store()
    fill(store)
    with service(store) as opened:
        same = opened.create_checkpoint(
            "W",
            states(3)[-1],
            agent_id="a",
            agent_state={"kept": MARKER},
            stage_state={"kept": MARKER},
            resume_handler=MARKER,
        )
        assert same.sequence == 3
        assert opened.create_checkpoint("W", {"n": 9}).sequence == 4
    assert restored(store).context == {"n": 9}


@pytest.mark.parametrize("mode", ["default", "performance", "compliance"])
@pytest.mark.parametrize("compression", ["none", "zstd", "gzip"])
def test_every_encoding_is_compressed_first_and_sealed_then(mode, compression):
    store = encrypted_store()
    settings = {"mode": mode, "compression": compression, "compression_threshold_bytes": 100}
    with service(store, blob_threshold_bytes=1 << 30, **settings) as opened:
        opened.create_checkpoint("W", {"text": MARKER * 1000})
        opened.create_checkpoint("W", {"text": MARKER * 1000, "more": MARKER * 2000})
        assert latest(opened, "W")["more"] == MARKER * 2000
    stored = everything(store)
    assert MARKER.encode() not in stored
    assert (len(stored) < 15_000) == (compression != "none")


def test_a_change_too_large_for_its_record_is_sealed_too():
    store = encrypted_store()
    with service(store, compression="none", warn_bytes=1 << 30) as opened:
        opened.create_checkpoint("W", {})
        opened.create_checkpoint("W", {"all": [f"{MARKER} {n}" for n in range(60_000)]})
        assert len(latest(opened, "W")["all"]) == 60_000
    assert MARKER.encode() not in everything(store)


def test_equal_blobs_of_one_workflow_are_one_and_those_of_two_do_not_correlate():
    store = encrypted_store()
    with service(store) as opened:
        opened.create_checkpoint("A", {"one": LARGE})
        opened.create_checkpoint("A", {"one": LARGE, "two": LARGE})
        assert len(store._blobs) == 1
        opened.create_checkpoint("B", {"one": LARGE})
        assert len(store._blobs) == 2
    assert hashlib.sha256(LARGE.encode()).hexdigest() not in store._blobs


def test_a_fork_is_encrypted_anew_under_its_own_key_blobs_too():
    store = encrypted_store()
    fill(store)
    with service(store) as opened:
        opened.fork_workflow("W@3", "F")
        [record] = store.records("F", 1, 1)
        mine = plainjson.loads(record.partition(b"\n")[0])["payload"]["key"]
        [original] = store.records("W", 1, 1)
        assert mine != plainjson.loads(original.partition(b"\n")[0])["payload"]["key"]
    destroy(store, "workflow:W")
    assert restored(store, "F@1").context == states(3)[-1]
    with pytest.raises(KeyDestroyedError):
        restored(store, "W@3")


def replace_record(store, sequence, data, workflow_id="W"):
    """Put a record where another was, with every checksum made right again."""
    workflow = store._workflows[workflow_id]
    parent = workflow.entries[sequence - 1].checksum if sequence > 1 else GENESIS
    for number in range(sequence, max(workflow.records) + 1):
        data = data if number == sequence else workflow.records[number]
        changed, checksum = rehashed(data, parent)
        workflow.records[number] = changed
        workflow.entries[number] = replace(workflow.entries[number], checksum=checksum)
        parent = checksum
    workflow.head = replace(workflow.head, checksum=parent)


def assert_refused(store, name="W@3"):
    with pytest.raises(SealBrokenError):
        restored(store, name)


def test_a_record_of_another_workflow_is_refused():
    store = encrypted_store()
    fill(store)
    fill(store, "V")
    replace_record(store, 3, store._workflows["V"].records[3])
    assert_refused(store)


def test_a_record_of_another_sequence_is_refused():
    store = encrypted_store()
    fill(store)
    replace_record(store, 3, store._workflows["W"].records[2])
    assert_refused(store)


def test_a_record_under_another_heading_is_refused():
    store = encrypted_store()
    fill(store)
    data = store._workflows["W"].records[3]
    for old, new in [
        (b'"agent":"a"', b'"agent":"b"'),
        (b'"agent":"a"', b'"type":"workflow_start","agent":"a"'),
        (b'"size":', b'"size":1'),
    ]:
        assert old in data
        replace_record(store, 3, data.replace(old, new, 1))
        assert_refused(store)
    replace_record(store, 3, data)
    assert restored(store).context == states(3)[-1]


def test_a_record_rolled_back_to_an_older_history_is_refused():
    """An older ciphertext for the same place: the store went another way after event or checkpoint 1."""
    store = encrypted_store()
    fill(store, count=1)
    old = encrypted_copy(store)
    for each, n in ((store, 1), (old, 2)):
        with service(each) as opened:
            opened.create_checkpoint("W", {"n": n})
            opened.create_checkpoint("W", {"n": n + 10})
    replace_record(store, 3, old._workflows["W"].records[3])
    assert_refused(store)


def encrypted_copy(store):
    """Copy an encrypted store in memory."""
    import copy

    twin = encrypted_store()
    for name in ("_workflows", "_blobs", "_trails", "_leaves", "_files", "_leases", "_tokens"):
        setattr(twin, name, copy.deepcopy(getattr(store, name)))
    return twin


def test_a_record_in_the_clear_is_refused():
    store, plain = encrypted_store(), encrypted_store()
    fill(store)
    plain._files.clear()
    with service(plain, encryption_key=None) as opened:
        for state in states(3):
            opened.create_checkpoint("W", state)
    replace_record(store, 3, plain._workflows["W"].records[3])
    assert_refused(store)
    store._workflows["W"] = plain._workflows["W"]
    store._blobs.update(plain._blobs)
    assert_refused(store)


@pytest.mark.sweep
def test_a_record_cut_short_anywhere_is_refused():
    store = encrypted_store()
    fill(store)
    data = store._workflows["W"].records[3]
    end = data.index(b"\n") + 1
    for length in range(end, len(data)):
        replace_record(store, 3, data[:length])
        assert_refused(store)


@pytest.mark.sweep
def test_every_changed_byte_of_a_sealed_record_is_refused():
    store = encrypted_store()
    fill(store)
    data = store._workflows["W"].records[3]
    for at in range(data.index(b"\n") + 1, len(data) - 1):
        replace_record(store, 3, data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert_refused(store)


def replace_keyframe(store, data, workflow_id="W"):
    workflow = store._workflows[workflow_id]
    sequence, keyframe = 1, workflow.keyframes[1]
    workflow.keyframes.clear()
    sha256 = hashlib.sha256(data).hexdigest()
    entry = replace(keyframe.entry, sha256=sha256, length=len(data))
    workflow.keyframes[sequence] = replace(keyframe, entry=entry, data=data)
    first = workflow.records[1].replace(keyframe.entry.sha256.encode(), sha256.encode())
    replace_record(store, 1, first, workflow_id)


@pytest.mark.sweep
def test_a_keyframe_that_is_anothers_changed_cut_or_in_the_clear_is_refused():
    store = encrypted_store()
    fill(store)
    fill(store, "V")
    data = store._workflows["W"].keyframes[1].data
    end = data.index(b"\n") + 1
    wrong = [store._workflows["V"].keyframes[1].data, data[:-1], data[: end + 10], data[:end]]
    wrong += [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in range(end, len(data))]
    wrong += [data.replace(b'"compression":"none"', b'"compression":"zstd"')]
    wrong += [data.replace(b'"sequence":1', b'"sequence":2')]
    header = plainjson.loads(data[:end])
    del header["header"]["sealed"]
    wrong += [plainjson.dumps(header) + b'\n{"context":{"n":1}}', b'{\n"$schema": "x", "state": {}}']
    for each in wrong:
        replace_keyframe(store, each)
        assert_refused(store)


def test_a_blob_that_is_anothers_changed_or_in_the_clear_is_refused():
    store = encrypted_store()
    fill(store)
    fill(store, "V")
    opened = vault(store)
    mine = next(iter(store._workflows["W"].entries[2].blobs))
    data = store._blobs[mine]
    assert opened.open_blob(data, mine) == LARGE.encode()
    wrong = [LARGE.encode(), data[:-1], data[:60], data[:20], b'{"sealed":', b'{"sealed":[]}\n' + data]
    end = data.index(b"\n") + 1
    wrong += [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in range(end, end + 60)]
    wrong += [data.replace(b'"v":1', b'"v":2'), data.replace(b"XAES", b"AES-")]
    for each in wrong:
        with pytest.raises(SealBrokenError):
            opened.open_blob(each, mine)


def change_event(store, seq, line, workflow_id="W"):
    """Put an event where another was, with every hash made right again."""
    workflow = store._workflows[workflow_id]
    previous = workflow.events[seq - 2].hash if seq > 1 else GENESIS
    for at in range(seq - 1, len(workflow.events)):
        data = line if at == seq - 1 else workflow.events[at].data
        changed, digest = rechained(data, previous)
        workflow.events[at] = replace(workflow.events[at], data=changed, hash=digest)
        previous = digest
    workflow.head = replace(workflow.head, event_hash=previous)


def read_events(store):
    with service(store) as opened:
        return opened.events("W")


def test_an_event_that_is_anothers_changed_moved_or_in_the_clear_is_refused():
    store = encrypted_store()
    fill(store)
    fill(store, "V")
    lines = [event.data for event in store._workflows["W"].events]
    line = lines[3]
    assert b'"TOLD"' in line
    fields = plainjson.loads(line)
    open_line = {
        **{name: fields[name] for name in ("seq", "ts", "type", "wf")},
        "data": {"a": 1},
        "hash": fields["hash"],
    }
    other = plainjson.loads(lines[4])["sealed"]
    wrong = [
        store._workflows["V"].events[3].data,
        lines[4],
        line.replace(b'"TOLD"', b'"GONE"'),
        plainjson.dumps(open_line) + b"\n",
        plainjson.dumps({**fields, "sealed": other}) + b"\n",
        plainjson.dumps({**fields, "sealed": {**fields["sealed"], "data": fields["sealed"]["data"][:-4]}})
        + b"\n",
        plainjson.dumps({**fields, "sealed": {**fields["sealed"], "prev": GENESIS}}) + b"\n",
        plainjson.dumps({**fields, "sealed": {**fields["sealed"], "data": 1}}) + b"\n",
        plainjson.dumps({**fields, "sealed": {}}) + b"\n",
    ]
    for each in wrong:
        change_event(store, 4, each)
        with pytest.raises((SealBrokenError, ChecksumMismatchError)) as refusal:
            read_events(store)
        assert isinstance(refusal.value, SealBrokenError)
        change_event(store, 4, line)
    assert read_events(store)[3].data == {"what": MARKER}


def test_what_went_before_a_sealed_event_cannot_be_changed_either():
    store = encrypted_store()
    fill(store)
    line = store._workflows["W"].events[2].data
    assert b"CHECKPOINT_CREATED" in line and b"sealed" not in line
    change_event(store, 3, line.replace(b'"cp_seq":3', b'"cp_seq":2'))
    with pytest.raises(SealBrokenError):
        read_events(store)


def test_of_events_that_change_a_listing_the_status_and_the_numbers_stay_readable():
    store = encrypted_store()
    fill(store)
    with service(store) as opened:
        opened.append_event("W", "CHECKPOINT_STATUS", {"status": "failed", "error_message": MARKER}, cp_seq=2)
        opened.append_event("W", "CHECKPOINTS_PRUNED", {"sequences": [1]})
        events = {event.type: event for event in opened.events("W")}
    lines = [plainjson.loads(line) for line in store.events("W")]
    clear = {line["type"]: line.get("data") for line in lines}
    assert clear["CHECKPOINT_STATUS"] == {"status": "failed"}
    assert clear["CHECKPOINTS_PRUNED"] == events["CHECKPOINTS_PRUNED"].data
    assert events["CHECKPOINT_STATUS"].data == {"status": "failed", "error_message": MARKER}
    told = Event(
        1,
        parse_timestamp("2026-01-01T00:00:00Z"),
        "CHECKPOINT_STATUS",
        "W",
        data={"status": MARKER, "pinned": MARKER},
    )
    assert readable_data(told) == {}


def test_the_payload_of_an_audit_entry_is_sealed_for_its_entry():
    store = encrypted_store()
    with service(store, session="s-1") as opened:
        opened.record_decision("W", f"{MARKER} decided")
        opened.record_decision("V", "something else")
    entries = [decode_entry(line, None) for line in store.trail("s-1")]
    mine, other = [entry for entry in entries if entry.payload]
    stored, another = store.payload("s-1", mine.seq), store.payload("s-1", other.seq)
    assert stored is not None and MARKER.encode() not in stored
    opened_vault = vault(store)
    assert read_payload(opened_vault, mine, stored)["description"] == f"{MARKER} decided"
    with pytest.raises(ChecksumMismatchError):
        read_payload(opened_vault, mine, another)
    for entry, data in [(mine, another), (other, stored), (replace(mine, type="OTHER"), stored)]:
        with pytest.raises(SealBrokenError):
            opened_vault.open_payload(entry, data)
    for data in (
        b'{"data":{}}\n',
        b'{"sealed":1}\n',
        b'{"sealed":{"v":1,"alg":"XAES-256-GCM","key":"' + b"0" * 32 + b'"}}',
    ):
        with pytest.raises((SealBrokenError, KeyDestroyedError)):
            opened_vault.open_payload(mine, data)


def test_a_payload_of_no_workflow_is_sealed_with_the_stores_own_key():
    store = encrypted_store()
    with service(store, session="s-1") as opened:
        told = opened._engine.trail.told("NOTED", payload={"what": MARKER})
        opened._engine.trail.record(*told)
    [entry] = [e for line in store.trail("s-1") if (e := decode_entry(line, None)).payload]
    assert read_payload(vault(store), entry, store.payload("s-1", entry.seq)) == {"what": MARKER}


def test_files_of_the_store_can_be_sealed_under_their_name():
    opened = vault(encrypted_store())
    sealed = opened.seal_file("holds/one", MARKER.encode())
    assert MARKER.encode() not in sealed
    assert opened.open_file("holds/one", sealed) == MARKER.encode()
    for name, data in [("holds/two", sealed), ("holds/one", MARKER.encode()), ("holds/one", sealed[:-1])]:
        with pytest.raises(SealBrokenError):
            opened.open_file(name, data)


def test_a_persons_value_is_opened_by_nobody_once_its_key_is_destroyed_and_the_rest_stays():
    store = encrypted_store()
    state = {"who": Personal("alice", {"mail": MARKER, "years": {1, 2}}), "by": Personal("bob", "B"), "n": 1}
    with service(store) as opened:
        first = opened.create_checkpoint("W", state)
        assert opened.create_checkpoint("W", dict(state)) == first
        opened.append_event("W", "ASKED", {"who": Personal("alice", MARKER)})
        assert latest(opened, "W") == state
        assert MARKER not in repr(latest(opened, "W")["who"])
    before = everything(store)
    destroy(store, "subject:alice")
    with service(store) as opened:
        left = latest(opened, "W")
        assert isinstance(left["who"], Erased) and left["by"] == Personal("bob", "B") and left["n"] == 1
        assert isinstance(opened.events("W", type="ASKED")[0].data["who"], Erased)
        assert opened.create_checkpoint("W", left) == first
        assert opened.validate_checkpoint(first)
        assert opened.create_checkpoint("W", {**left, "n": 2}).sequence == 2
        assert latest(opened, "W") == {**left, "n": 2}
    assert MARKER.encode() not in before


def test_a_persons_value_moves_with_a_fork_and_is_erased_there_as_well():
    store = encrypted_store()
    with service(store) as opened:
        opened.create_checkpoint("W", {"who": Personal("alice", MARKER)})
        opened.fork_workflow("W@1", "F")
        assert latest(opened, "F")["who"] == Personal("alice", MARKER)
    destroy(store, "subject:alice")
    assert isinstance(restored(store, "F@1").context["who"], Erased)


def test_a_value_sealed_for_something_else_is_no_persons_value():
    store = encrypted_store()
    opened = vault(store)
    key_id, text = opened.seal_personal("alice", b"packed")
    assert opened.open_personal(key_id, text) == ("alice", b"packed")
    with pytest.raises(SealBrokenError):
        opened.open_personal(opened.sealer("W").key_id, text)
    with pytest.raises(SealBrokenError):
        opened.open_personal(opened.seal_personal("bob", b"x")[0], text)


def test_a_writer_whose_key_was_destroyed_meanwhile_writes_nothing_with_it(monkeypatch):
    # It does not look at the key again by itself, however long it takes to write.
    monkeypatch.setattr(rings, "RECHECK_SECONDS", 1e9)
    store = encrypted_store()
    # Nobody is warned of damage, which here would be an error: there is none.
    with service(store) as opened:
        opened.create_checkpoint("W", {"n": 1})
        destroy(store, "workflow:W")
        with pytest.raises(CheckpointConflictError):
            opened.create_checkpoint("W", {"n": 2})
        assert opened.append_event("W", "TOLD", {"n": 2}).data == {"n": 2}
        assert opened.create_checkpoint("W", {"n": 3}).sequence == 2
        assert latest(opened, "W") == {"n": 3}
        assert [event.erased for event in opened.events("W")] == [False, False, False]
        with pytest.raises(KeyDestroyedError):
            opened.restore_checkpoint("W@1")


def test_a_writer_who_notices_later_that_its_key_was_destroyed_begins_with_a_complete_state():
    store = encrypted_store()
    with service(store) as opened:
        opened.create_checkpoint("W", {"n": 1, "more": [1, 2, 3]})
        destroy(store, "workflow:W")
        vault_of(opened).look_again("W")
        assert opened.create_checkpoint("W", {"n": 1, "more": [1, 2, 3]}).sequence == 2
        assert opened.create_checkpoint("W", {"n": 2, "more": [1, 2, 3]}).sequence == 3
        assert opened.restore_checkpoint("W@2").context == {"n": 1, "more": [1, 2, 3]}
        assert latest(opened, "W") == {"n": 2, "more": [1, 2, 3]}
    assert restored(store).context == {"n": 2, "more": [1, 2, 3]}


def test_a_keyframe_that_is_owed_does_not_bring_back_what_was_erased():
    store = encrypted_store()
    with service(store) as opened:
        for n in range(60):
            opened.create_checkpoint("W", {"text": MARKER * 100 * n})
        housekeeper = opened._engine.housekeeper
        last = opened.create_checkpoint("W", {"text": MARKER * 20_000})
        keyframes = len(store.keyframes("W"))
        from holdfast.application.housekeeping import write_keyframe
        from holdfast.application.keyframes import Caption

        key_id = vault_of(opened).sealer("W").key_id
        destroy(store, "workflow:W")
        vault_of(opened).keyring.begin(None)
        with pytest.raises(KeyDestroyedError):
            write_keyframe(opened._engine.kit, Caption("W", last.sequence, "", key_id=key_id), {"a": 1})
        assert len(store.keyframes("W")) == keyframes and not housekeeper.has_work


def test_erased_events_say_so_and_the_rest_of_the_listing_works():
    store = encrypted_store()
    fill(store)
    destroy(store, "workflow:W")
    with service(store) as opened:
        assert [event.erased for event in opened.events("W")] == [False, False, False, True, True]
        assert [meta.id.sequence for meta in opened.list_checkpoints("W")] == [3, 2, 1]
        result = opened.validate_checkpoint("W@3")
        assert result.valid and "not at hand" in result.notes[0]


def test_without_the_keyring_what_is_sealed_says_that_it_is():
    store = encrypted_store()
    fill(store)
    store._files.clear()
    with service(store, encryption_key=None) as opened:
        with pytest.raises(KeyUnavailableError, match="lost its keyring"):
            opened.restore_checkpoint("W@3")
        with pytest.raises(KeyUnavailableError, match="lost its keyring"):
            opened.events("W")


def test_a_wrong_key_opens_nothing():
    store = encrypted_store()
    fill(store)
    with pytest.raises(KeyUnavailableError):
        vault(store, NEW_KEY)


def test_nothing_is_decoded_before_its_seal_was_checked():
    class Watching(Formats):
        decoded = 0

        def decode(self, *args):
            Watching.decoded += 1
            return super().decode(*args)

    from holdfast.application.restore import Restorer

    store = encrypted_store()
    with service(store, mode="performance", compression_threshold_bytes=1) as opened:
        opened.create_checkpoint("W", {"text": MARKER * 1000})
    data = store._workflows["W"].keyframes[1].data
    replace_keyframe(store, data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(SealBrokenError):
        Restorer(store, Watching(), vault(store)).restore("W", 1)
    assert Watching.decoded == 0


def test_a_persons_value_is_refused_where_nothing_is_encrypted():
    store = encrypted_store()
    store._files.clear()
    with service(store, encryption_key=None) as opened:
        with pytest.raises(UnsupportedTypeError, match="--encrypt") as refusal:
            opened.create_checkpoint("W", {"deep": [Personal("alice", MARKER)]})
        assert refusal.value.place == "context.deep[0]"
        assert MARKER not in str(refusal.value)


def test_sealers_of_a_key_of_another_workflow_are_refused():
    opened: Vault = vault(encrypted_store())
    with pytest.raises(SealBrokenError, match="another workflow"):
        opened.sealer_with(opened.sealer("A").key_id, "B")
