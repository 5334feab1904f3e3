"""What the trail tells of and the store no longer has."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.adapters.memory import MemoryStore
from holdfast.application.audit.missing import Missing, _Numbers, erased_at, is_told
from holdfast.domain.errors import CheckpointNotFoundError
from holdfast.domain.log_check import Verdict
from holdfast.domain.time import timestamp_text
from holdfast.domain.trail import read_fields
from holdfast.ports import Store
from tests.application.copies import copy
from tests.application.services import make_service


def missing(store: Store, beside: Store | None = None) -> list[str]:
    """Hear the trail of a store, and compare with it, or with another."""
    heard = Missing()
    for line in store.leaves():
        heard.hear(read_fields(line))
    return [str(fault) for fault in heard.faults(beside or store)]


@pytest.fixture(params=["files", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "store") if request.param == "files" else f"sqlite:{tmp_path / 'store.db'}"


def fill(url: str) -> None:
    with bootstrap.open(url, session="s-1") as service:
        for number in range(3):
            service.create_checkpoint("INV-1", {"n": number})
        service.create_checkpoint("INV-2", {"n": 1})
        for number in range(4):
            service.append_event("INV-1", "NOTED", {"n": number})


def verified(url: str) -> tuple[Verdict, list[str]]:
    with bootstrap.open(url) as service:
        report = service.audit.verify()
    return report.verdict(), [str(fault) for fault in report.faults]


def cut(url: str, count: int) -> None:
    """Take the last events of INV-1 away, as if they had never been."""
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:"))) as database, database:
            order = "select rowid from events where workflow_id = 'INV-1' order by seq desc limit ?"
            database.execute(f"delete from events where rowid in ({order})", (count,))
        return
    [path] = Path(url).glob("events/*/inv-1*/*.jsonl")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-count]))


def lose(url: str) -> None:
    """Take away all that is stored of INV-1, behind the back of Holdfast."""
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:"))) as database, database:
            for table in ("events", "checkpoints", "keyframes"):
                database.execute(f"delete from {table} where workflow_id = 'INV-1'")
    else:
        for folder in (*Path(url).glob("checkpoints/*/inv-1*"), *Path(url).glob("events/*/inv-1*")):
            shutil.rmtree(folder)


def test_a_loss_is_accepted_by_erasing_what_only_the_trail_still_knows(url: str):
    fill(url)
    lose(url)
    with bootstrap.open(url) as service:
        with pytest.raises(CheckpointNotFoundError):
            service.erasure.workflow("INV-3", reason="the disk lost it")
        service.erasure.workflow("INV-1", reason="the disk lost it")
        assert service.load_latest("INV-2") is not None
    assert verified(url) == (Verdict.OK, [])


def test_a_workflow_is_told_of_until_it_is_erased(url: str):
    fill(url)
    with bootstrap.open(url) as service:
        store = service._engine.kit.store
        assert is_told(store, "INV-1") and not is_told(store, "INV")
        service.erasure.workflow("INV-1", reason="done with it")
        assert not is_told(store, "INV-1") and is_told(store, "INV-2")


def test_when_a_workflow_was_erased_is_told(url: str):
    fill(url)
    with bootstrap.open(url) as service:
        store = service._engine.kit.store
        assert erased_at(store, "INV-1") == ""
        service.erasure.workflow("INV-1", reason="done with it")
        [told] = service.audit.query_events(workflow="INV-1", event_types=["DATA_ERASED"])
        assert erased_at(store, "INV-1") == timestamp_text(told.timestamp)
        assert erased_at(store, "INV-2") == ""


def test_a_workflow_that_is_gone_altogether_is_named(url: str):
    fill(url)
    assert verified(url) == (Verdict.OK, [])
    lose(url)
    told = "the trail tells of checkpoint 3, which is neither stored nor erased: workflow INV-1"
    assert verified(url) == (Verdict.FAILED, [told])


def test_events_that_were_cut_off_are_named_also_when_the_workflow_has_gone_past_them(url: str):
    fill(url)
    cut(url, 2)
    told = "the trail tells of event 7, and the events end with 5: workflow INV-1"
    assert verified(url) == (Verdict.FAILED, [told])
    with bootstrap.open(url) as service:
        for _ in range(3):
            service.append_event("INV-1", "NOTED")
    told = "event 6 was told as two different ones: the first was lost: workflow INV-1"
    assert verified(url) == (Verdict.FAILED, [told])
    with bootstrap.open(url) as service:
        service.erasure.workflow("INV-1", reason="the loss is accepted")
    assert verified(url) == (Verdict.OK, [])


def test_a_checkpoint_in_the_place_of_one_that_is_lost_is_named(url: str):
    fill(url)
    lose(url)
    with bootstrap.open(url) as service:
        for number in range(10, 18):
            service.create_checkpoint("INV-1", {"n": number})
    told = "checkpoint 1 was told as two different ones: the first was lost: workflow INV-1"
    assert verified(url) == (Verdict.FAILED, [told])


def test_numbers_are_told_in_any_order_and_believed_within_limits():
    numbers = _Numbers()
    for number in (1, 2, 5, 3, 4, 5, 3, 0, -1, 2**70):
        numbers.tell(number, f"sum of {number}")
    numbers.tell(2, None)
    assert numbers.twice == 0
    numbers.tell(4, "another")
    numbers.tell(1, "another")
    assert numbers.twice == 4


def test_an_event_in_the_place_of_another_is_named(url: str):
    fill(url)
    cut(url, 1)
    with bootstrap.open(url, audit=False) as service:
        service.append_event("INV-1", "ANOTHER")
    told = "event 7 is not the one that the trail tells of: workflow INV-1"
    assert verified(url) == (Verdict.FAILED, [told])


def test_what_was_erased_deleted_or_pruned_is_not_missing(url: str):
    fill(url)
    with bootstrap.open(url) as service:
        service.fork_workflow(service.create_checkpoint("INV-3", {"n": 1}), "INV-4")
        service.create_checkpoint("INV-3", {"n": 2})
        service.delete(service.create_checkpoint("INV-3", {"n": 3}))
        service.erasure.workflow("INV-1", reason="it was asked for")
    assert verified(url) == (Verdict.OK, [])


def test_an_erased_workflow_is_forgotten_and_told_anew_when_it_goes_on():
    store, empty = MemoryStore(), MemoryStore()
    service = make_service(store)
    service.create_checkpoint("A", {"n": 1})
    service.erasure.workflow("A", reason="it was asked for")
    service.flush()
    assert missing(store, empty) == []
    service.create_checkpoint("A", {"n": 2})
    assert len(missing(store, empty)) == 1


def test_what_an_application_tells_of_itself_is_not_looked_for():
    store = MemoryStore()
    service = make_service(store)
    facts = {"cp_seq": 3, "checksum": "sha256:" + "0" * 64}
    service.audit.log_event("CHECKPOINT_CREATED", workflow_id="ELSEWHERE", facts=facts)
    service.audit.log_event("SEEN", workflow_id="ELSEWHERE", facts={"event_seq": 3, "event_hash": "x"})
    service.append_event("A", "DATA_ERASED")
    assert missing(store) == [] and len(missing(store, MemoryStore())) == 1


def test_a_copy_has_its_own_trail():
    source, target = MemoryStore(), MemoryStore()
    make_service(source).create_checkpoint("A", {"n": 1})
    copy(source, target)
    make_service(target).append_event("A", "NOTED")
    assert missing(target) == []
