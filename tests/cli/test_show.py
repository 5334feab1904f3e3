from __future__ import annotations

import base64
import json
import shutil
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from holdfast import __version__, bootstrap
from holdfast.cli.exits import Exit
from holdfast.domain.plain import TypeRegistry
from tests.cli.conftest import Run, damage_record, entries, fill


def file_of(store: Path, pattern: str = "checkpoint_000001.*") -> Path:
    (found,) = (path for path in store.glob(f"checkpoints/*/wf-1*/{pattern}") if "deltas" not in path.name)
    return found


def test_a_checkpoint_is_described_and_its_state_summed_up(run: Run, store: Path):
    out = run("show", "WF-1", "--store", store).out
    lines = [line.split(maxsplit=1) for line in out.splitlines() if line]
    told = {words[0]: words[-1] for words in lines}
    assert told["checkpoint"] == "WF-1@3"
    assert (told["stage"], told["agent"], told["parent"]) == ("work", "worker-2", "WF-1@2")
    assert told["current_step"] == "2"
    assert told["messages"] == '[3] last: {"role":"agent","text":"done"}'


def test_meta_leaves_the_state_alone(run: Run, store: Path):
    out = run("show", "WF-1@1", "--meta", "--store", store).out
    assert "messages" not in out and "keyframe json" in out
    meta = run("show", "WF-1@1", "--meta", "--json", "--store", store).data
    assert list(meta) == ["checkpoint"]
    assert meta["checkpoint"]["keyframe"]["format"] == "json"
    assert meta["checkpoint"]["session_id"] == "s-1"


def test_what_was_said_of_it_later_is_shown_and_listed_by(run: Run, store: Path):
    with bootstrap.open(f"file:{store}", actor="ann") as service:
        service.annotate("WF-1@2", labels=["release"], note="before the move")
    out = run("show", "WF-1@2", "--meta", "--store", store).out
    assert "labels       release" in out and "note         before the move" in out
    shown = run("show", "WF-1@2", "--meta", "--json", "--store", store).data["checkpoint"]
    assert (shown["labels"], shown["note"], shown["noted_by"]) == (["release"], "before the move", "ann")
    listed = run("list", "WF-1", "--label", "release", "--json", "--store", store).data
    assert [row["id"] for row in listed["checkpoints"]] == ["WF-1@2"]


def test_it_is_told_whether_a_signed_head_covers_it_and_what_made_it(run: Run, store: Path):
    before = run("show", "WF-1@1", "--meta", "--json", "--store", store).data["checkpoint"]
    assert (before["signature"]["state"], before["producer"]) == ("waiting", __version__)
    assert "waits for the next signed head" in run("show", "WF-1@1", "--store", store).out
    run("audit", "anchor", "--store", store)
    told = run("show", "WF-1@1", "--meta", "--json", "--store", store).data["checkpoint"]["signature"]
    assert (told["state"], told["is_own_key"], told["problem"]) == ("signed", True, "")
    out = run("show", "WF-1@1", "--store", store).out
    assert f"signed, entry {told['index']} under the head of {told['size']}" in out
    assert f"Holdfast {__version__}" in out


@pytest.mark.parametrize("name", ["WF-1@2", "WF-1@latest~1", "WF-1@3~1"])
def test_every_way_to_name_a_checkpoint_leads_to_it(run: Run, store: Path, name):
    shown = run("show", name, "--state=/messages", "--json", "--store", store).data
    assert shown["id"] == "WF-1@2"
    assert shown["state"] == [{"role": "user", "text": "begin"}, {"role": "agent", "text": "café ☃"}]


def test_the_state_is_json_and_a_pointer_leads_into_it(run: Run, store: Path):
    whole = json.loads(run("show", "--state", "WF-1@2", "--store", store).out)
    assert whole["current_step"] == 1
    assert run("show", "WF-1@2", "--state=/messages/0/role", "--store", store).out == '"user"\n'
    assert run("show", "WF-1@2", "--state=/messages/7", "--store", store).exit_code == Exit.NOT_FOUND
    assert run("show", "WF-1@2", "--state=messages", "--store", store).exit_code == Exit.USAGE


def test_a_name_after_two_dashes_is_a_name(run: Run, store: Path):
    assert run("show", "--store", store, "--", "--state").exit_code == Exit.NOT_FOUND


def test_raw_is_the_stored_record_byte_for_byte(run: Run, store: Path):
    raw = run("show", "WF-1@2", "--raw", "--store", store).out
    (deltas,) = store.glob("checkpoints/*/wf-1*/*.deltas.jsonl")
    assert raw in deltas.read_text(encoding="utf-8") and raw.startswith('{"seq":2,')
    told = run("show", "WF-1@2", "--raw", "--json", "--store", store).data
    assert base64.b64decode(told["record_base64"]).decode() == raw


def test_raw_is_spelled_out_on_a_terminal(run: Run, tmp_path: Path, monkeypatch):
    with bootstrap.open(str(tmp_path / "new"), mode="performance") as service:
        for text in ("one", "two \x9b31m"):
            service.create_checkpoint("WF", {"text": text, "long": "x" * 5_000, "data": bytes(range(256))})
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    out = run("show", "WF@2", "--raw", "--store", tmp_path / "new").out
    assert '"encoding":"msgpack"' in out
    assert all(letter == "\n" or letter.isprintable() for letter in out)


def test_state_meta_and_raw_exclude_each_other(run: Run, store: Path):
    assert run("show", "WF-1", "--raw", "--meta", "--store", store).exit_code == Exit.USAGE


@pytest.mark.parametrize("mode", ["default", "performance", "compliance"])
@pytest.mark.parametrize("compression", ["none", "zstd", "gzip"])
def test_every_encoding_is_shown_the_same(run: Run, tmp_path: Path, mode, compression):
    place = tmp_path / "new"
    fill(place, mode=mode, compression=compression, compression_threshold_bytes=1)
    for sequence in (1, 3):
        state = run("show", f"WF-1@{sequence}", "--state=/messages/0", "--store", place)
        assert json.loads(state.out) == {"role": "user", "text": "begin"}
    keyframe = file_of(place)
    assert json.loads(run("show", keyframe, "--state=/total_steps").out) == 3
    assert run("show", keyframe, "--meta", "--json").data["checkpoint"]["keyframe"]["format"] in keyframe.name


def test_values_of_every_type_are_shown_even_of_types_nobody_registered_here(run: Run, tmp_path: Path):
    class Invoice:
        pass

    registry = TypeRegistry()
    registry.register(
        Invoice, encode=lambda value: {"total": Decimal("1.00")}, decode=lambda plain: Invoice()
    )
    moment = datetime(2026, 1, 11, tzinfo=UTC)
    with bootstrap.open(str(tmp_path / "new"), registry=registry) as service:
        service.create_checkpoint(
            "WF", {"invoice": Invoice(), "at": moment, "raw": b"\x00"}, agent_state={"i": Invoice()}
        )
    context = run("show", "WF", "--state=/context", "--json", "--store", tmp_path / "new").data["state"]
    assert context == {
        "invoice": {"$hf": "obj", "t": "Invoice", "v": {"total": {"$hf": "decimal", "v": "1.00"}}},
        "at": {"$hf": "datetime", "v": "2026-01-11T00:00:00+00:00"},
        "raw": {"$hf": "bytes", "v": "AA=="},
    }
    assert run("show", "WF", "--store", tmp_path / "new").exit_code == 0


def test_large_values_kept_as_blobs_are_shown_whole(run: Run, tmp_path: Path):
    with bootstrap.open(str(tmp_path / "new")) as service:
        service.create_checkpoint("WF", {"text": "x" * 50_000})
    shown = run("show", "WF", "--state=/context/text", "--json", "--store", tmp_path / "new").data
    assert shown["state"] == "x" * 50_000


def test_a_checkpoint_file_is_found_in_the_store_it_lies_in(run: Run, store: Path):
    assert run("show", file_of(store), "--meta").out.startswith("checkpoint   WF-1@1\n")
    assert run("show", file_of(store).relative_to(Path.cwd()), "--meta").exit_code == 0


def test_a_file_outside_of_a_store_cannot_be_verified_and_is_not_shown(run: Run, store: Path, tmp_path: Path):
    shutil.copy(file_of(store), tmp_path / "checkpoint_000001.json")
    result = run("show", tmp_path / "checkpoint_000001.json")
    assert result.exit_code == Exit.NO_STORE and "--store" in result.err


def test_a_checkpoint_file_of_another_store_is_not_answered_with_ours(run: Run, store: Path, tmp_path: Path):
    fill(tmp_path / "other")
    result = run("show", file_of(tmp_path / "other"), "--store", store)
    assert (result.exit_code, result.out) == (Exit.NOT_FOUND, "")
    assert "the file is not in this store" in result.err


def test_a_damaged_checkpoint_ends_with_20_and_shows_nothing(run: Run, store: Path):
    damage_record(store, 2)
    for name in ("WF-1@2", "WF-1@3"):
        result = run("show", name, "--store", store, "--state")
        assert (result.exit_code, result.out) == (Exit.CORRUPT, "")
        assert "Traceback" not in result.err


def test_a_fork_tells_where_it_came_from(run: Run, store: Path):
    with bootstrap.open(str(store)) as service:
        service.fork_workflow("WF-1@2", "WF-fork")
    assert "forked from  WF-1@2" in run("show", "WF-fork", "--meta", "--store", store).out


def test_what_was_hidden_is_shown_as_it_is_stored(run: Run, tmp_path: Path):
    with bootstrap.open(str(tmp_path / "store")) as service:
        service.create_checkpoint("w", {"password": "hunter2"})
    result = run("show", "w@1", "--state=/context/password", "--store", str(tmp_path / "store"))
    assert result.exit_code == Exit.DONE
    assert result.out.startswith('"[REDACTED:password:')


def test_a_point_between_checkpoints_is_shown(run: Run, store: Path):
    lines = run("show", "WF-1@event:2", "--store", store).out.splitlines()
    assert lines[:3] == ["point        WF-1@event:2", "from         WF-1@1", "replayed     1 event"]
    assert lines[4].startswith("state, ") and lines[4].endswith(", replayed")


def test_a_point_for_programs(run: Run, store: Path):
    data = run("show", "WF-1@event:2", "--store", store, "--json").data
    assert data["point"] == {
        "id": "WF-1@event:2",
        "workflow_id": "WF-1",
        "event_seq": 2,
        "checkpoint": "WF-1@1",
        "events_replayed": 1,
        "skipped": [],
    }
    assert data["state"]["decisions"][0]["description"] == "go on"
    part = run("show", "WF-1@event:2", "--state=/decisions/0/agent", "--store", store, "--json").data
    assert part == {"id": "WF-1@event:2", "state": "planner", "notes": []}


@pytest.mark.parametrize("option", ["--meta", "--raw"])
def test_nothing_is_stored_of_a_point(run: Run, store: Path, option: str):
    result = run("show", "WF-1@event:2", option, "--store", store)
    assert result.exit_code == Exit.USAGE


def test_looking_at_a_point_is_told(run: Run, store: Path):
    run("show", "WF-1@event:2", "--store", store)
    told = run("audit", "log", "--type", "STATE_READ", "--store", store, "--json").data
    assert told["data"]["event_seq"] == 2


def test_the_address_in_the_dashboard_is_printed_and_nothing_is_told_of_it(
    run: Run, store: Path, monkeypatch
):
    page = run("show", "WF-1", "--web", "--store", store)
    assert page.out == "http://127.0.0.1:8787/ui/#/checkpoints/WF-1%403\n"
    monkeypatch.setenv("HOLDFAST_WEB_URL", "https://holdfast.example/ui")
    told = run("show", "WF-1@2", "--web", "--json", "--store", store).data
    assert told == {"id": "WF-1@2", "url": "https://holdfast.example/ui/#/checkpoints/WF-1%402"}
    other = run("show", "WF-1@2", "--web", "--web-url", "http://box/ui/", "--store", store)
    assert other.out.startswith("http://box/ui/#/")
    assert entries(run, store, "STATE_READ") == []
