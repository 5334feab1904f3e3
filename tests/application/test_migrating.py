"""States of other versions are migrated when they are read, and what is stored stays as it is."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.formats import for_mode
from holdfast.application.app import App
from holdfast.application.keyframes import Caption, build_keyframe, read_keyframe
from holdfast.application.migrating import migrate, migrate_state
from holdfast.application.service import CheckpointService
from holdfast.domain import envelope, plainjson
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointError,
    ConfigError,
    MigrationFailedError,
    RedactedStateWarning,
    UnsupportedVersionError,
)
from holdfast.domain.migration import MigrationRegistry
from holdfast.domain.state import WorkflowState
from tests.application.versions import KINDS, Home, app_of, kept, upgrading
from tests.encrypted import rehashed

FORMATS = for_mode("default")
CAPTION = Caption("W", 7, "2026-01-11T14:30:00.000000Z", checksum="sha256:" + "0" * 64, parent_sequence=6)


@pytest.fixture(params=KINDS)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    return Home(request.param, tmp_path)


def context_of(service: CheckpointService, name: str) -> dict[str, Any]:
    return service.restore_checkpoint(name).context


def test_a_state_is_migrated_on_every_read_and_stored_as_it_was(home: Home) -> None:
    with home.open("1.0.0") as old:
        old.create_checkpoint("W", {"plan": "ask, decide", "mine": 1})
    with home.open("2.0.0") as new, kept(new, "W"):
        for _ in range(2):
            assert context_of(new, "W@1") == {
                "mine": 1,
                "steps": {"ask": {"done": False}, "decide": {"done": False}},
            }
        latest = new.load_latest("W")
        assert latest is not None and "steps" in latest.context
        assert new.list_checkpoints("W")[0].schema_version == "1.0.0"
    with home.open("1.0.0") as old:
        assert context_of(old, "W@1") == {"plan": "ask, decide", "mine": 1}


def test_checkpoints_of_two_versions_stand_in_one_chain_and_each_is_exact(home: Home) -> None:
    with home.open("1.0.0") as old:
        for number in range(3):
            old.create_checkpoint("W", {"plan": "ask, decide", "n": number, "long": "x" * 500})
    with home.open("1.1.0") as new:
        state = new.load_latest("W")
        assert state is not None
        for number in (3, 4):
            state.context["n"] = number
            new.create_checkpoint("W", state)
        versions = [meta.schema_version for meta in reversed(new.list_checkpoints("W"))]
        assert versions == ["1.0.0", "1.0.0", "1.0.0", "1.1.0", "1.1.0"]
        for number in range(5):
            assert context_of(new, f"W@{number + 1}") == {
                "steps": ["ask", "decide"],
                "n": number,
                "long": "x" * 500,
            }
            assert new.validate_checkpoint(f"W@{number + 1}").problems == ()
        last = new.get_by_id("W@5")
        assert last is not None and last.schema_version == "1.1.0"
        assert {"op": "delete", "path": ["context", "plan"]} in new.diff_checkpoints("W@3", "W@4")
    with home.open("1.0.0") as old:
        assert context_of(old, "W@3")["plan"] == "ask, decide"
        with pytest.raises(UnsupportedVersionError, match=r"version 1\.1\.0.*up to 1\.0\.0"):
            old.restore_checkpoint("W@4")


VERSIONS = ("1.0.0", "1.1.0", "2.0.0")
WORDS = st.lists(st.sampled_from(["ask", "act", "rest", "x" * 400]), min_size=1, max_size=6)


def shaped(version: str, words: list[str]) -> dict[str, Any]:
    """Give a plan the shape of a version."""
    if version == "1.0.0":
        return {"plan": ", ".join(words)}
    return {"steps": words if version == "1.1.0" else {word: {"done": False} for word in words}}


@pytest.mark.sweep
@given(
    stretches=st.lists(st.tuples(st.sampled_from(VERSIONS), st.lists(WORDS, max_size=12)), max_size=4),
    is_eager=st.booleans(),
)
def test_whatever_versions_wrote_a_workflow_every_checkpoint_is_exact(
    stretches: list[tuple[str, list[list[str]]]], is_eager: bool
) -> None:
    """Programs of rising versions write in turn; each state is read by all that are not older."""
    home, model = Home("memory", Path()), list[tuple[str, list[str]]]()
    for version, plans in sorted(stretches, key=lambda stretch: stretch[0]):
        with home.open(version) as service:
            if is_eager and model and model[-1][0] != version:
                assert [one.error for one in upgrading(service).apply()] == [None]
                model.append((version, model[-1][1]))
            for words in plans:
                made = service.create_checkpoint("W", shaped(version, words), force=True)
                model.append((version, words))
                assert made.sequence == len(model)
    for reader in VERSIONS:
        with home.open(reader) as service:
            for sequence, (version, words) in enumerate(model, start=1):
                if version <= reader:
                    assert context_of(service, f"W@{sequence}") == shaped(reader, words)
                else:
                    with pytest.raises(UnsupportedVersionError):
                        service.restore_checkpoint(f"W@{sequence}")


def test_a_keyframe_says_which_version_its_state_has(home: Home) -> None:
    with home.open("1.1.0") as new:
        for number in range(120):
            new.create_checkpoint("W", {"steps": ["ask"], "n": number, "pad": str(number) * 400})
        new.flush()
        store = new._engine.kit.store
        sequences = [one.sequence for one in store.keyframes("W")]
        assert len(sequences) > 2
        for sequence in sequences:
            line = store.keyframe("W", sequence).replace(b"\n", b"")
            assert b'"state_schema":"1.1.0"' in line
    with home.open("2.0.0") as newer:
        for sequence in sequences:
            assert context_of(newer, f"W@{sequence}")["steps"] == {"ask": {"done": False}}


def test_a_state_that_is_unchanged_is_recorded_anew_by_a_program_of_another_version(home: Home) -> None:
    with home.open(App(schema_version="1.0.0")) as old:
        first = old.create_checkpoint("W", {"a": 1})
        assert old.create_checkpoint("W", {"a": 1}) == first
    same = App(schema_version="1.0.1")
    same.migration("1.0.0", "1.0.1")(dict)
    with home.open(same) as new:
        second = new.create_checkpoint("W", {"a": 1})
        assert second.sequence == 2
        assert new.create_checkpoint("W", {"a": 1}) == second
        assert [meta.schema_version for meta in new.list_checkpoints("W")] == ["1.0.1", "1.0.0"]


def test_a_failing_migration_leaves_the_stored_bytes_as_they_were(home: Home) -> None:
    with home.open("1.0.0") as old:
        old.create_checkpoint("W", {"no_plan": True})
    with home.open("1.1.0") as new, kept(new, "W"):
        with pytest.raises(MigrationFailedError, match=r"1\.0\.0 -> 1\.1\.0.*KeyError") as failure:
            new.restore_checkpoint("W@1")
        assert failure.value.place == "W@1"
        with pytest.raises(MigrationFailedError):
            new.load_latest("W")
    with home.open("1.0.0") as old:
        assert context_of(old, "W@1") == {"no_plan": True}


def test_recovery_migrates_and_replays_onto_the_new_shape(home: Home) -> None:
    with home.open("1.0.0") as old:
        old.create_checkpoint("W", {"plan": "ask"})
        old.append_event("W", "CONTEXT_UPDATED", {"context": {"mood": "calm"}})
        old.record_decision("W", "ask two")
    with home.open("1.1.0") as new:
        result = new.recover_workflow("W")
        assert result.success and result.state is not None
        assert result.state.context["steps"] == ["ask"]
        assert [decision["description"] for decision in result.state.decisions] == ["ask two"]


def test_recovery_of_a_newer_state_is_refused_with_both_versions(home: Home) -> None:
    with home.open("2.0.0") as new:
        new.create_checkpoint("W", {"steps": {}})
    refused = pytest.raises(UnsupportedVersionError, match=r"version 2\.0\.0.*up to 1\.0\.0")
    with home.open("1.0.0") as old, kept(old, "W"), refused:
        old.recover_workflow("W")


def test_a_fork_keeps_the_version_of_what_it_starts_from(home: Home) -> None:
    with home.open("1.0.0") as old:
        old.create_checkpoint("W", {"plan": "ask"})
    with home.open("1.1.0") as new:
        new.fork_workflow("W@1", "V")
        assert new.list_checkpoints("V")[0].schema_version == "1.0.0"
        assert context_of(new, "V@1") == {"steps": ["ask"]}


def test_a_large_value_in_a_blob_is_there_for_the_migration(tmp_path: Path) -> None:
    home = Home("file", tmp_path)
    with home.open("1.0.0", blob_threshold_bytes=1024) as old:
        old.create_checkpoint("W", {"plan": ", ".join(["ask"] * 1000)})
    with home.open("1.1.0") as new:
        assert context_of(new, "W@1") == {"steps": ["ask"] * 1000}


def test_fields_that_no_step_knows_are_kept() -> None:
    home = Home("memory", Path())
    state = WorkflowState(context={"plan": "ask"}, tasks=[1], extra={"novel": {"when": date(2026, 1, 11)}})
    with home.open("1.0.0") as old:
        old.create_checkpoint("W", state)
    with home.open("2.0.0") as new:
        restored = new.restore_checkpoint("W@1")
        assert restored.extra == {"novel": {"when": date(2026, 1, 11)}}
        assert restored.tasks == [1]
        assert restored.checkpoint_id == "W@1"


def test_a_step_sees_plain_data_and_may_answer_values() -> None:
    moment = datetime(2026, 1, 11, tzinfo=UTC)
    seen: list[Any] = []
    app = App(schema_version="1.1.0")

    @app.migration("1.0.0", "1.1.0")
    def step(fields: dict[str, Any]) -> dict[str, Any]:
        seen.append(fields["context"]["when"])
        more = {"urls": {"a", "b"}, "due": [moment], "big": 2**70, "by_number": {1: "one"}}
        return {**fields, "context": {**fields["context"], **more}}

    home = Home("memory", Path())
    with home.open("1.0.0") as old:
        old.create_checkpoint("W", {"when": moment})
    with home.open(app) as new:
        assert context_of(new, "W@1") == {
            "when": moment,
            "urls": {"a", "b"},
            "due": [moment],
            "big": 2**70,
            "by_number": {1: "one"},
        }
    assert seen == [{"$hf": "datetime", "v": "2026-01-11T00:00:00+00:00"}]


def test_a_value_that_cannot_be_stored_is_a_failed_migration() -> None:
    app = App(schema_version="1.1.0")
    app.migration("1.0.0", "1.1.0")(lambda fields: {**fields, "context": {"it": object()}})
    home = Home("memory", Path())
    with home.open("1.0.0") as old:
        old.create_checkpoint("W", {"a": 1})
    with home.open(app) as new, pytest.raises(MigrationFailedError, match="cannot be stored") as failure:
        new.restore_checkpoint("W@1")
    assert failure.value.place == "W@1 it"


def test_a_migration_cannot_give_a_state_to_another_workflow() -> None:
    app = App(schema_version="1.1.0")
    app.migration("1.0.0", "1.1.0")(lambda fields: {**fields, "workflow_id": "V"})
    home = Home("memory", Path())
    with home.open("1.0.0") as old:
        old.create_checkpoint("W", {"a": 1})
    with home.open(app) as new, pytest.raises(MigrationFailedError, match="workflow's id"):
        new.restore_checkpoint("W@1")


def test_secrets_that_were_never_stored_are_told_by_where_they_would_be_now() -> None:
    app = App(schema_version="1.1.0")

    @app.migration("1.0.0", "1.1.0")
    def move(fields: dict[str, Any]) -> dict[str, Any]:
        context = fields["context"]
        return {**fields, "context": {"account": {"password": context["password"]}}}

    home = Home("memory", Path())
    with home.open("1.0.0") as old:
        old.create_checkpoint("W", {"password": "hunter2-and-more"})
    with home.open(app) as new, pytest.warns(RedactedStateWarning) as warned:
        restored = new.restore_checkpoint("W@1")
    assert "hunter2" not in str(restored)
    [told] = [one.message for one in warned if isinstance(one.message, RedactedStateWarning)]
    assert told.pointers == ("/context/account/password",)


def test_a_failing_step_does_not_let_a_secret_out() -> None:
    app = App(schema_version="1.1.0")

    def failing(fields: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("password=hunter2-and-more is no plan")

    app.migration("1.0.0", "1.1.0")(failing)
    home = Home("memory", Path())
    with home.open("1.0.0") as old:
        old.create_checkpoint("W", {"a": 1})
    with home.open(app) as new, pytest.raises(MigrationFailedError) as failure:
        new.restore_checkpoint("W@1")
    assert "hunter2" not in str(failure.value)


def test_the_version_that_counts_is_the_one_that_was_hashed(tmp_path: Path) -> None:
    """Somebody who changes the listing of a database cannot have a state migrated twice, or not at all."""
    home = Home("sqlite", tmp_path)
    with home.open("1.0.0") as old:
        old.create_checkpoint("W", {"plan": "ask"})
        old.create_checkpoint("W", {"plan": "ask, act"})
    with sqlite3.connect(tmp_path / "store.db") as connection:
        changed = connection.execute("update checkpoints set schema = '2.0.0'")
        assert changed.rowcount == 2
    connection.close()
    with home.open("2.0.0") as new:
        assert context_of(new, "W@2")["steps"] == {"ask": {"done": False}, "act": {"done": False}}
        assert "the listing says version 2.0.0" in new.validate_checkpoint("W@2").problems[0]


def test_an_app_has_a_version_of_three_numbers() -> None:
    with pytest.raises(ConfigError, match="no version"):
        App(schema_version="latest")


OLDER = MigrationRegistry()


@OLDER.migration("0.9.0", "1.0.0")
def _with_checkpoint_id(whole: dict[str, Any]) -> dict[str, Any]:
    """An envelope of the past named its checkpoint in the header itself."""
    header = dict(whole["header"])
    header["checkpoint_id"] = {name: header.pop(name) for name in ("workflow_id", "sequence", "checksum")}
    return {**whole, "header": header}


def older_file(**more: Any) -> bytes:
    """Write a checkpoint file as a Holdfast of the past might have."""
    whole = plainjson.loads(build_keyframe(CAPTION, {"a": [1, 2]}, (), FORMATS).data)
    header = whole["header"]
    header |= {**header.pop("checkpoint_id"), "version": "0.9.0", "novel": {"kept": True}}
    return plainjson.dumps({**whole, "$schema": "checkpoint-schema-v0.9.0", **more}).replace(b"{", b"{\n", 1)


def test_the_envelope_of_a_file_is_migrated_with_everything_unknown_kept() -> None:
    data = older_file(beside={"x": 1})
    migrated = migrate(data, "1.0.0", OLDER)
    whole = plainjson.loads(migrated)
    assert list(whole) == ["$schema", "header", "state", "footer", "beside"]
    assert whole["$schema"] == "checkpoint-schema-v1.0.0"
    assert whole["header"]["version"] == "1.0.0"
    assert whole["header"]["novel"] == {"kept": True}
    assert whole["beside"] == {"x": 1}
    read = read_keyframe(migrated, FORMATS, "W", 7)
    assert read.tree == {"a": [1, 2]} and read.checksum == CAPTION.checksum


NOVEL = st.text(min_size=1).map(lambda text: f"x-{text}")
EXTRA = st.dictionaries(NOVEL, st.integers() | st.text() | st.none())


@pytest.mark.sweep
@given(around=EXTRA, in_header=EXTRA, state=EXTRA)
def test_whatever_a_file_holds_beside_what_is_known_survives(
    around: dict[str, Any], in_header: dict[str, Any], state: dict[str, Any]
) -> None:
    given_file = plainjson.loads(older_file(**around, state=state))
    given_file["header"] |= in_header
    data = b"{\n" + plainjson.dumps(given_file)[1:]
    whole = plainjson.loads(migrate(data, "1.0.0", OLDER))
    assert whole["state"] == state
    assert {name: whole[name] for name in around} == around
    assert {name: whole["header"][name] for name in in_header} == in_header


@pytest.mark.parametrize("text", [b"9.9.9", b"\xff", b"what", b""])
def test_a_version_that_somebody_made_up_is_refused_and_nothing_breaks(text: bytes) -> None:
    """Whoever writes to a store can make the checksums of what he writes."""
    home = Home("memory", Path())
    with home.open("1.1.0") as service:
        service.create_checkpoint("W", {"steps": ["ask"]})
        [record] = home.store.records("W", 1, 1)
        made_up = record.replace(b'"schema":"1.1.0"', b'"schema":"' + text + b'"')
        changed, checksum = rehashed(made_up, "GENESIS")
        workflow = home.store._workflows["W"]
        workflow.records[1] = changed
        workflow.entries[1] = replace(workflow.entries[1], checksum=checksum)
        assert list(home.store.records("W", 1, 1)) == [changed] != [record]
        with pytest.raises(CheckpointError) as refusal:
            service.restore_checkpoint("W@1")
        assert isinstance(refusal.value, UnsupportedVersionError) or text == b"\xff"


def test_a_file_of_an_older_envelope_is_read_lazily(monkeypatch: pytest.MonkeyPatch) -> None:
    data = older_file()
    with pytest.raises(UnsupportedVersionError, match=r"v0\.9\.0"):
        read_keyframe(data, FORMATS, "W", 7)
    monkeypatch.setattr(envelope, "MIGRATIONS", OLDER)
    assert read_keyframe(data, FORMATS, "W", 7).tree == {"a": [1, 2]}


def test_the_envelope_of_an_encoded_file_is_migrated_and_its_payload_kept() -> None:
    formats = for_mode("performance")
    tree = {"a": "x" * 5_000}
    data = build_keyframe(CAPTION, tree, (), formats).data
    forward = MigrationRegistry()
    forward.register("1.0.0", "1.1.0", lambda whole: {**whole, "novel": 1})
    migrated = migrate(data, "1.1.0", forward)
    assert migrated.partition(b"\n")[2] == data.partition(b"\n")[2]
    assert plainjson.loads(migrated.partition(b"\n")[0])["novel"] == 1
    # The same major version: what is not known here is passed over.
    assert read_keyframe(migrated, formats, "W", 7).tree == tree


def test_a_file_of_the_version_asked_for_is_answered_as_it_is() -> None:
    data = build_keyframe(CAPTION, {"a": 1}, (), FORMATS).data
    assert migrate(data, "1.0.0") is data


def test_a_file_that_no_step_leads_from_is_refused() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"v0\.9\.0"):
        migrate(older_file(), "1.0.0")


@pytest.mark.parametrize(
    "data", [b"[]", b"{}", b'{"$schema": "x", "header": {}}', b"\xff", b'{"header": {}}']
)
def test_bytes_that_are_no_checkpoint_file_are_refused(data: bytes) -> None:
    with pytest.raises(CheckpointCorruptError):
        migrate(data, "1.0.0", OLDER)


def test_a_sealed_file_is_left_alone() -> None:
    line = plainjson.dumps({"$schema": envelope.SCHEMA, "header": {"sealed": {}}, "footer": {}})
    with pytest.raises(MigrationFailedError, match="sealed"):
        migrate(line + b"\n...", "1.1.0")


def test_the_state_in_a_file_is_migrated_with_everything_around_it_kept() -> None:
    data = older_file(**{"$schema": envelope.SCHEMA, "state": {"context": {"plan": "ask"}}})
    migrated = migrate_state(data, "2.0.0", app_of("2.0.0").migrations)
    before, after = plainjson.loads(data), plainjson.loads(migrated)
    assert after["state"] == {"context": {"steps": {"ask": {"done": False}}}}
    assert after["header"] == {**before["header"], "state_schema": "2.0.0"}
    assert after["footer"] == before["footer"]
    assert migrate_state(migrated, "2.0.0", app_of("2.0.0").migrations) is migrated


def test_the_state_in_an_encoded_file_is_left_alone() -> None:
    data = build_keyframe(CAPTION, {"a": "x" * 5_000}, (), for_mode("performance")).data
    with pytest.raises(MigrationFailedError, match="encoded"):
        migrate_state(data, "2.0.0", app_of("2.0.0").migrations)
