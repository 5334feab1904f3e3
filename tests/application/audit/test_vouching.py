"""What the trail says for a checkpoint is said of what was checked, and of nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import holdfast
from holdfast.application.audit import vouching
from holdfast.application.audit.log_keeping import HEADS
from holdfast.application.audit.vouching import Standing, Vouching, vouch
from holdfast.application.resolve import Found, resolve
from holdfast.application.service import CheckpointService
from holdfast.domain import trail
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.ports import Store


@pytest.fixture(params=["file", "sqlite"])
def url(request, tmp_path: Path) -> str:
    return f"{request.param}:{tmp_path}/store"


@contextmanager
def opened(url: str, tmp_path: Path, **settings) -> Iterator[CheckpointService]:
    with holdfast.open(url, signing_key=str(tmp_path / "keys"), **settings) as service:
        yield service


def store_of(service: CheckpointService) -> Store:
    return service._engine.kit.store


def told(service: CheckpointService, name: str, **other) -> Vouching:
    found = resolve(store_of(service), name)
    found = Found(found.workflow_id, replace(found.entry, **other))
    return vouch(store_of(service), service.audit, found)


def test_a_checkpoint_is_signed_once_a_head_covers_its_entry(url, tmp_path):
    with opened(url, tmp_path) as service:
        service.create_checkpoint("W", {"n": 1})
        service.audit.keeper.anchor(create_key=True)
        service.create_checkpoint("W", {"n": 2})
        before, after = told(service, "W@1"), told(service, "W@2")
        assert (before.standing, after.standing) == (Standing.SIGNED, Standing.WAITING)
        assert before.index is not None and before.index < before.size <= (after.index or 0)
        [key] = service.audit.keeper.keys()
        assert before.is_own_key and before.key == key.id.hex()
        service.audit.keeper.anchor()
        assert told(service, "W@2").standing is Standing.SIGNED


def test_looking_signs_nothing(url, tmp_path):
    with opened(url, tmp_path) as service:
        service.create_checkpoint("W", {"n": 1})
        service.audit.keeper.anchor(create_key=True)
        service.create_checkpoint("W", {"n": 2})
        heads = list(service.audit.keeper.heads())
        told(service, "W@1"), told(service, "W@2")
        assert list(service.audit.keeper.heads()) == heads


def test_a_key_that_only_the_log_names_is_not_our_own(url, tmp_path):
    with opened(url, tmp_path) as service:
        service.create_checkpoint("W", {"n": 1})
        service.audit.keeper.anchor(create_key=True)
    with opened(url, tmp_path / "elsewhere") as service:
        said = told(service, "W@1")
    assert (said.standing, said.is_own_key) == (Standing.SIGNED, False)


def test_where_nothing_was_signed_it_waits(url, tmp_path):
    with opened(url, tmp_path) as service:
        service.create_checkpoint("W", {"n": 1})
        said = told(service, "W@1")
    assert (said.standing, said.size, said.key) == (Standing.WAITING, 0, "")


def test_of_a_checkpoint_made_without_a_trail_nothing_is_told(url, tmp_path):
    with opened(url, tmp_path, audit=False) as service:
        service.create_checkpoint("W", {"n": 1})
    with opened(url, tmp_path) as service:
        service.create_checkpoint("other", {"n": 1})
        assert told(service, "W@1") == Vouching(Standing.UNTOLD)


def test_whoever_read_a_checkpoint_does_not_vouch_for_it(url, tmp_path):
    with opened(url, tmp_path, audit=False) as service:
        made = service.create_checkpoint("W", {"n": 1})
    with opened(url, tmp_path) as service:
        service.load_latest("W")
        facts = {"cp_seq": 1, "checksum": made.checksum}
        service.audit.log_event("SEEN", workflow_id="W", facts=facts)
        service.audit.log_event("CHECKPOINT_CREATED", workflow_id="W", facts=facts)
        service.audit.keeper.anchor(create_key=True)
        assert told(service, "W@1") == Vouching(Standing.UNTOLD)


def test_another_checkpoint_under_the_same_number_does_not_verify(url, tmp_path):
    with opened(url, tmp_path) as service:
        service.create_checkpoint("W", {"n": 1})
        service.audit.keeper.anchor(create_key=True)
        said = told(service, "W@1", checksum="sha256:" + "0" * 64)
    assert (said.standing, said.key) == (Standing.BROKEN, "")
    assert "another checkpoint" in said.problem


def test_an_entry_that_was_rewritten_does_not_verify(tmp_path):
    url = f"file:{tmp_path}/store"
    with opened(url, tmp_path) as service:
        service.create_checkpoint("W", {"n": 1}, agent_id="ann")
        service.audit.keeper.anchor(create_key=True)
    for path in (tmp_path / "store").rglob("audit_trail.jsonl"):
        path.write_bytes(path.read_bytes().replace(b'"agent":"ann"', b'"agent":"eve"'))
    with opened(url, tmp_path, read_only=True) as service:
        said = told(service, "W@1")
    assert said.standing is Standing.BROKEN and said.problem


def test_a_head_that_nobody_signed_does_not_verify(url, tmp_path):
    with opened(url, tmp_path) as service:
        service.create_checkpoint("W", {"n": 1})
        service.audit.keeper.anchor(create_key=True)
        name = max(store_of(service).files(HEADS))
        note = store_of(service).file(name) or b""
        forged = note[:-8] + bytes([note[-8] ^ 1]) + note[-7:]
        store_of(service).commit([Commit(NO_WORKFLOW, Head(), files={name: forged})])
        said = told(service, "W@1")
    assert said.standing is Standing.BROKEN and said.problem


def test_the_entry_is_found_in_a_log_that_is_far_larger_than_what_is_read(url, tmp_path, monkeypatch):
    monkeypatch.setattr(vouching, "_PORTION", 4)
    monkeypatch.setattr(vouching, "_FAR", 16)
    with opened(url, tmp_path, session="one") as one, opened(url, tmp_path, session="two") as two:
        for number in range(40):
            (two if number % 2 else one).create_checkpoint(f"W{number % 2}", {"n": number})
        names = [f"W{run}@{number}" for run in (0, 1) for number in range(1, 21)]
        places = [told(one, name) for name in names]
        assert {said.standing for said in places} == {Standing.WAITING}
        assert len({said.index for said in places}) == len(names)
        lost = told(one, "W0@20", timestamp="2001-01-01T00:00:00.000000Z")
    assert lost.standing is Standing.UNKNOWN and "no others were looked at" in lost.problem


def test_the_version_is_that_of_whoever_began_the_session_last(url, tmp_path, monkeypatch):
    for number, version in enumerate(("1.5.0", "1.6.0"), 1):
        monkeypatch.setattr(trail, "__version__", version)
        with opened(url, tmp_path, session="work") as service:
            service.create_checkpoint("W", {"n": number})
    with opened(url, tmp_path) as service:
        assert [told(service, f"W@{number}").producer for number in (1, 2)] == ["1.5.0", "1.6.0"]
        assert told(service, "W@2").session_id == "work"
        monkeypatch.setattr(vouching, "_SESSION_MAX", 1)
        assert told(service, "W@2").producer is None


def test_a_session_that_is_begun_by_name_tells_the_version_too(url, tmp_path):
    with opened(url, tmp_path, session="work") as service:
        service.open_session()
        service.create_checkpoint("W", {"n": 1})
        assert told(service, "W@1").producer == holdfast.__version__


def test_a_record_that_is_not_the_one_that_was_told_of_does_not_verify(tmp_path):
    url = f"file:{tmp_path}/store"
    with opened(url, tmp_path) as service:
        for number in (1, 2):
            service.create_checkpoint("W", {"word": f"kelp{number}"})
        service.audit.keeper.anchor(create_key=True)
    [records] = (tmp_path / "store").glob("checkpoints/*/*/checkpoint_*.deltas.jsonl")
    records.write_bytes(records.read_bytes().replace(b"kelp2", b"help2"))
    with opened(url, tmp_path) as service:
        changed = told(service, "W@2")
        assert (changed.standing, changed.problem) == (
            Standing.BROKEN,
            "the record is not the one that was committed",
        )
        assert told(service, "W@1").standing is Standing.SIGNED
