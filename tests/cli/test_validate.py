from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.cli.exits import Exit
from holdfast.cli.output import Output
from holdfast.cli.validate import Verdict, check_everything
from holdfast.testing import FailingStore
from tests.application.services import make_kit, make_service
from tests.cli.conftest import Run, damage_record, entries
from tests.cli.encrypted import encrypted_store, use_key


def test_everything_is_checked_without_names(run: Run, store: Path):
    result = run("validate", "--store", store)
    assert result.exit_code == 0
    said = "every byte of them is what was committed; events were not checked, --deep does that"
    assert result.out == f"valid  4 checkpoints: {said}\n"
    assert run("validate", "--all", "--store", store).out == result.out


def test_named_checkpoints_are_checked(run: Run, store: Path):
    told = run("validate", "WF-1@2", "WF-2", "--json", "--store", store).data
    assert (told["valid"], told["checkpoints"], told["problems"]) == (True, 2, [])


def test_names_and_all_exclude_each_other(run: Run, store: Path):
    assert run("validate", "WF-1", "--all", "--store", store).exit_code == Exit.USAGE


def test_deep_checks_events_and_the_stores_own_files(run: Run, store: Path):
    told = run("validate", "--deep", "--json", "--store", store).data
    assert told["valid"] and told["deep"] and told["events"] >= 2
    out = run("validate", "--deep", "--store", store).out
    assert " events: every byte is what was committed" in out and "not checked" not in out
    assert run("validate", "--json", "--store", store).data["deep"] is False


def test_a_damaged_record_is_named_and_ends_with_20(run: Run, store: Path):
    damage_record(store, 2)
    result = run("validate", "--store", store)
    assert result.exit_code == Exit.CORRUPT
    assert "damaged  WF-1@2: " in result.out and "Traceback" not in result.err
    # What to do is said once, and not that one should do what was just done.
    assert "Run `" not in result.out and "`holdfast recover WF-1 --plan`" in result.err
    told = run("validate", "--json", "--store", store).data
    assert not told["valid"]
    assert {one["place"] for one in told["problems"]} >= {"WF-1@2"}
    # What does not build on it is as good as before.
    assert run("validate", "WF-1@1", "WF-2", "--store", store).exit_code == 0


def test_what_can_be_brought_back_is_said_with_the_name_of_its_workflow(run: Run, store: Path):
    wanted = "hint: Run `holdfast recover WF-1 --plan` to see"
    (events,) = store.glob("events/*/wf-1*/*.jsonl")
    events.write_bytes(events.read_bytes().replace(b"T-1", b"T-2"))
    assert wanted in run("events", "WF-1", "--store", store).err
    damage_record(store, 2)
    assert wanted in run("show", "WF-1@2", "--store", store).err


def test_a_damaged_event_is_found_by_deep(run: Run, store: Path):
    (events,) = store.glob("events/*/wf-1*/*.jsonl")
    events.write_bytes(events.read_bytes().replace(b"T-1", b"T-2"))
    shallow = run("validate", "--store", store)
    assert shallow.exit_code == 0 and "events were not checked" in shallow.out
    result = run("validate", "--deep", "--store", store)
    assert result.exit_code == Exit.CORRUPT
    assert "events of WF-1" in result.out


def test_a_damaged_first_event_is_found_too(run: Run, store: Path):
    (events,) = store.glob("events/*/wf-2*/*.jsonl")
    first, *rest = events.read_bytes().splitlines(keepends=True)
    events.write_bytes(b"".join([first.replace(b'"ts":"2', b'"ts":"3'), *rest]))
    assert run("validate", "--deep", "--store", store).exit_code == Exit.CORRUPT


def test_a_view_that_is_gone_is_no_damage(run: Run, store: Path):
    for manifest in store.glob("checkpoints/*/*/manifest.jsonl"):
        manifest.unlink()
    result = run("validate", "--store", store)
    assert (result.exit_code, result.out[:5]) == (0, "valid")


def test_a_bar_is_drawn_on_a_terminal_only(run: Run, store: Path, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("holdfast.cli.bars.PATIENCE_SECONDS", 0)
    assert run("validate", "--store", store, "--json").err == ""
    assert run("validate", "--store", store, "--quiet").err == ""
    assert "checkpoints" in run("validate", "--store", store).err


@pytest.mark.sweep
@pytest.mark.parametrize("how", ["cut", "gone"])
def test_no_damage_is_answered_with_a_stack_trace(run: Run, store: Path, tmp_path: Path, how):
    """Whatever file is cut or gone, every command ends with an answer."""
    answers = {Exit.DONE, Exit.NOT_FOUND, Exit.NO_STORE, Exit.CORRUPT, Exit.OTHER_FORMAT}
    commands = ("list", "list WF-1", "show WF-1@2", "diff WF-1@3", "validate --deep", "doctor")
    for path in sorted(path.relative_to(store) for path in store.rglob("*") if path.is_file()):
        copy = tmp_path / "copy"
        shutil.copytree(store, copy)
        hurt = copy / path
        hurt.write_bytes(hurt.read_bytes()[: hurt.stat().st_size // 2]) if how == "cut" else hurt.unlink()
        for args in commands:
            result = run(*args.split(), "--store", copy)
            assert result.exit_code in answers, (path, args, result.err)
        shutil.rmtree(copy)


def test_a_listing_is_read_once_however_long_it_is():
    store = FailingStore()
    service = make_service(store)
    for number in range(30):
        service.create_checkpoint("WF-1", {"n": number})
    service.create_checkpoint("WF-2", {"n": 0})
    store.calls.clear()
    verdict = Verdict()
    check_everything(Output(quiet=True), make_kit(store), verdict)
    assert (verdict.valid, verdict.checkpoints) == (True, 31)
    assert store.calls["entries"] == 2


def test_what_is_damaged_is_set_aside_if_asked_and_what_hangs_on_it_is_not(run: Run, store: Path):
    damage_record(store, 2)
    assert run("validate", "--store", store).exit_code == Exit.CORRUPT
    assert not (store / "quarantine").exists()
    result = run("validate", "--quarantine", "--store", store)
    assert result.exit_code == Exit.CORRUPT
    [line] = [line for line in result.out.splitlines() if line.startswith("set aside")]
    assert "WF-1@2: the bytes are kept as" in line
    assert "quarantine list" in result.err and "--quarantine" not in result.err
    again = run("validate", "--quarantine", "--json", "--store", store).data
    assert len(again["quarantined"]) == 1 and again["not_set_aside"] == []


@pytest.mark.sweep
def test_a_damaged_keyframe_is_rebuilt_if_asked_and_then_all_is_well(run: Run, tmp_path: Path):
    place = tmp_path / "grown"
    with bootstrap.open(str(place), retain=False, background=False) as service:
        for n in range(80):
            service.create_checkpoint("WF-1", {"n": n})
    second = sorted(place.rglob("checkpoint_*.json"))[1]
    second.write_bytes(second.read_bytes().replace(b"state", b"stale"))
    told = run("validate", "--store", place).out
    assert "an older one was used" in told and "every state comes back as it was committed; " in told
    assert "every byte" not in told
    result = run("validate", "--quarantine", "--store", place)
    assert result.exit_code == 0 and "rebuilt  keyframe WF-1@" in result.out
    assert run("validate", "--deep", "--json", "--store", place).data["problems"] == []


def test_a_wrong_key_is_no_damage_and_sets_nothing_aside(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    place = encrypted_store(run, monkeypatch, tmp_path)
    use_key(monkeypatch, b"another key of thirty-two bytes!")
    for more in ((), ("--jobs", "2"), ("--quarantine",)):
        result = run("validate", *more, "--store", place)
        assert result.exit_code == Exit.NO_KEY and "damaged" not in result.out
        assert result.err.startswith("error: the key that is configured is not the one")
    assert not (place / "quarantine").exists()


def test_without_any_key_stored_bytes_are_checked(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    place = encrypted_store(run, monkeypatch, tmp_path)
    monkeypatch.delenv("HOLDFAST_ENCRYPTION_KEY")
    result = run("validate", "--store", place)
    assert result.exit_code == 0 and "its key is not at hand" in result.out


def test_a_sample_of_all_is_checked(run: Run, store: Path):
    assert run("validate", "--sample", "50%", "--json", "--store", store).data["checkpoints"] == 2
    assert run("validate", "--sample", "1%", "--json", "--store", store).data["checkpoints"] == 1
    assert run("validate", "--all", "--sample", "100%", "--json", "--store", store).data["checkpoints"] == 4
    for wrong in ("5", "0%", "101%", "some%"):
        assert run("validate", "--sample", wrong, "--store", store).exit_code == Exit.USAGE
    assert run("validate", "WF-1@1", "--sample", "5%", "--store", store).exit_code == Exit.USAGE


def test_only_later_ones_are_checked(run: Run, store: Path):
    assert run("validate", "--since", "1h", "--json", "--store", store).data["checkpoints"] == 4
    future = run("validate", "--since", "2999-01-01", "--sample", "5%", "--json", "--store", store).data
    assert (future["checkpoints"], future["valid"]) == (0, True)


def test_several_at_a_time_find_the_same(run: Run, store: Path):
    damage_record(store, 2)
    one, many = (run("validate", "--jobs", jobs, "--json", "--store", store) for jobs in (1, 3))
    assert one.exit_code == many.exit_code == Exit.CORRUPT
    assert one.data == many.data


def test_a_dry_run_tells_what_would_be_set_aside(run: Run, store: Path):
    damage_record(store, 2)
    told = run("validate", "--quarantine", "--dry-run", "--json", "--store", store).data
    assert told["not_set_aside"] == ["would be set aside: WF-1@2, WF-1@3"]
    assert run("quarantine", "list", "--json", "--store", store).data["quarantined"] == []
    set_aside = run("validate", "--quarantine", "--reason", "a bad disk", "--json", "--store", store).data
    assert set_aside["quarantined"]
    assert [one["data"]["command"] for one in entries(run, store, "REQUEST_MADE")] == ["validate"]


def test_checkpoints_that_only_the_events_know_of_are_missed(run: Run, store: Path):
    with bootstrap.open(str(store)) as service:
        service.create_checkpoint("lost", {"step": 1})
    [folder] = (store / "checkpoints").glob("*/lost*")
    shutil.rmtree(folder)
    for command in (("validate", "--all", "--deep"), ("doctor",)):
        result = run(*command, "--store", store)
        assert result.exit_code == Exit.CORRUPT
        assert "tell of checkpoint 1" in " ".join(result.out.split())


def test_checkpoints_that_only_the_journal_still_knows_are_missed(run: Run, store: Path):
    for folder in store.glob("checkpoints/*/wf-1*"):
        shutil.rmtree(folder)
    result = run("validate", "--all", "--store", store)
    assert result.exit_code == Exit.CORRUPT and "WF-1@3: its journal tells of it; it is nowhere" in result.out
