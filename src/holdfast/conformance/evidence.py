"""What a store promises about evidence: stored bytes as they are, and a keyframe that may be replaced."""

from __future__ import annotations

from holdfast.conformance.history import History, Opening, blob_name, make_keyframe
from holdfast.domain.record import Removal


class Evidence(Opening):
    """Looking at what is stored of a checkpoint without believing it."""

    def test_the_evidence_of_a_checkpoint_is_its_record_its_keyframe_and_its_blobs(self) -> None:
        with self.opened() as store:
            one, two = b"one" * 1000, b"two" * 1000
            history = History(store)
            history.commit(keyframe=b"state", blobs={blob_name(one): one, blob_name(two): two})
            history.commit(blobs={blob_name(one): one})
            first, second = list(store.evidence("W", 1)), list(store.evidence("W", 2))
            assert first[:2] == [("record", history.records[1]), ("keyframe", b"state")]
            assert first[2:] == sorted((f"blob-{blob_name(data)}", data) for data in (one, two))
            assert second == [("record", history.records[2]), (f"blob-{blob_name(one)}", one)]

    def test_the_blobs_of_a_derived_keyframe_are_evidence_too(self) -> None:
        with self.opened() as store:
            data = b"large" * 1000
            history = History(store)
            history.commit(blobs={blob_name(data): data})
            history.commit()
            store.put_keyframe("W", make_keyframe(2, b"two", blobs=(blob_name(data),)))
            names = [name for name, _ in store.evidence("W", 2)]
            assert names == ["record", "keyframe", f"blob-{blob_name(data)}"]

    def test_of_what_is_not_there_there_is_no_evidence(self) -> None:
        with self.opened() as store:
            assert list(store.evidence("W", 1)) == []
            history = History(store)
            history.commit(keyframe=b"one")
            history.commit(group=2)
            assert list(store.evidence("W", 3)) == list(store.evidence("V", 1)) == []
            store.remove("W", Removal(sequences=(1,), groups=(1,)))
            assert list(store.evidence("W", 1)) == []

    def test_evidence_is_the_same_after_reopening(self) -> None:
        store = self.open_store()
        history = History(store)
        history.commit(keyframe=b"one", blobs={blob_name(b"b"): b"b"})
        before = list(store.evidence("W", 1))
        store = self.reopen(store)
        assert list(store.evidence("W", 1)) == before
        store.close()

    def test_a_keyframe_that_is_whole_stays_as_it_is(self) -> None:
        with self.opened() as store:
            History(store).commit(keyframe=b"one")
            store.put_keyframe("W", make_keyframe(1, b"another"))
            assert store.keyframe("W", 1) == b"one"
            assert [keyframe.sha256 for keyframe in store.keyframes("W")] == [blob_name(b"one")]
