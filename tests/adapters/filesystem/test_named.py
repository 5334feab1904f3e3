"""A store whose folder is moved, removed or replaced while it is open: nothing is written past it."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.named import Named
from holdfast.adapters.filesystem.page import Page
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import StoreNotFoundError
from tests.adapters.filesystem.commits import checkpoint


def opened(path, **options):
    return FilesystemStore.open(str(path), background=False, **options)


def test_another_file_of_the_name_is_noticed(tmp_path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").write_bytes(b"2")
    named = Named(Disk(str(tmp_path)), "a")
    named.check()
    (tmp_path / "b").rename(tmp_path / "a")
    with pytest.raises(StoreNotFoundError, match="journal of the store is gone"):
        named.check()


def test_what_is_pending_is_not_written_into_the_store_that_took_the_place(tmp_path) -> None:
    store = opened(tmp_path / "store")
    for _ in range(3):
        assert store.commit([checkpoint("w", store.head("w"))]) == [None]
    (tmp_path / "store").rename(tmp_path / "moved")
    other = opened(tmp_path / "store")
    assert other.commit([checkpoint("w", other.head("w"))]) == [None]
    expected = other.head("w")
    other.close()
    with pytest.raises(StoreNotFoundError):
        store._committer.settler.apply()
    with pytest.raises(StoreNotFoundError):
        store._committer.settler.settle()
    store.close()
    for where, sequence in (("store", 1), ("moved", 3)):
        again = opened(tmp_path / where)
        assert again.head("w").sequence == sequence
        again.close()
    again = opened(tmp_path / "store", read_only=True)
    assert again.head("w") == expected
    again.close()


@pytest.mark.parametrize("value_bytes", [100, 3_000_000], ids=["in the journal", "beside it"])
def test_nothing_is_committed_into_the_store_that_took_the_place(tmp_path, value_bytes) -> None:
    store = opened(tmp_path / "store", journal_bytes=4_000_000)
    assert store.commit([checkpoint("w", store.head("w"))]) == [None]
    before = store.head("w")
    (tmp_path / "store").rename(tmp_path / "moved")
    opened(tmp_path / "store").close()
    untouched = files_below(tmp_path / "store")
    value = bytes(value_bytes)
    blobs = {hashlib.sha256(value).hexdigest(): value}
    with pytest.raises(StoreNotFoundError):
        store.commit([replace(checkpoint("w", before), blobs=blobs)])
    assert files_below(tmp_path / "store") == untouched
    store.close()


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("what", ["journal", "ring"])
def test_without_its_journal_nothing_is_acknowledged(tmp_path, what) -> None:
    store = opened(tmp_path / "store")
    assert store.commit([checkpoint("w", store.head("w"))]) == [None]
    if what == "journal":
        shutil.rmtree(tmp_path / "store" / "journal")
    else:
        for ring in (tmp_path / "store" / "journal").glob("ring-*"):
            ring.unlink()
    for _ in range(2):
        with pytest.raises(StoreNotFoundError, match="journal of the store is gone"):
            store.commit([checkpoint("w", store.head("w"))])
    store.close()


def test_a_ring_that_must_be_replaced_is_not_that_of_the_store_that_took_the_place(tmp_path) -> None:
    store = opened(tmp_path / "store")
    assert store.commit([checkpoint("w", store.head("w"))]) == [None]
    before, journal = store.head("w"), store._committer.journal
    journal.page.raise_mark(Page.POISONED, journal.generation, 1)
    (tmp_path / "store").rename(tmp_path / "moved")
    other = opened(tmp_path / "store")
    for _ in range(3):
        assert other.commit([checkpoint("v", other.head("v"))]) == [None]
    untouched = files_below(tmp_path / "store")
    with pytest.raises(StoreNotFoundError):
        store.commit([checkpoint("w", before)])
    assert files_below(tmp_path / "store") == untouched
    assert other.commit([checkpoint("v", other.head("v"))]) == [None]
    other.close()
    store.close()


def test_a_ring_that_another_process_replaced_is_not_looked_for_in_a_copy(tmp_path) -> None:
    first, second = opened(tmp_path / "store"), opened(tmp_path / "store")
    assert second.commit([checkpoint("w", second.head("w"))]) == [None]
    known, journal = second.head("w"), first._committer.journal
    journal.page.raise_mark(Page.POISONED, journal.generation, 1)
    assert first.commit([checkpoint("v", first.head("v"))]) == [None]
    assert first._committer.journal.page.tail().generation == 2
    (tmp_path / "store").rename(tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", tmp_path / "store")
    with pytest.raises(StoreNotFoundError):
        second.commit([checkpoint("w", known)])
    for store in (first, second):
        store.close()
