"""`StoreConformance`: everything a store promises, in one class."""

from __future__ import annotations

from functools import partial

from holdfast.conformance.committing import Committing
from holdfast.conformance.copying import Arriving
from holdfast.conformance.evidence import Evidence
from holdfast.conformance.history import History, blob_name, in_threads, make_keyframe, raises
from holdfast.conformance.keeping import Keeping
from holdfast.conformance.leasing import Leasing
from holdfast.conformance.trailing import Trailing
from holdfast.domain.errors import CheckpointConflictError, InvalidIdError, StoreClosedError
from holdfast.domain.record import Head, Removal, Transition

#: Ids that a store keeps apart and never takes for paths, or refuses with InvalidIdError.
ODD_IDS = (
    *("..", "../../etc/passwd", "/etc/passwd", "a/b", "a\\b", "-rf", "%2e%2e", "w@1", "name with spaces"),
    *("a", "A", "con", "nul.txt", "x" * 255, "x" * 254 + "y", "x" * 500, "nul\0byte"),
    *("K", "\u212a", "caf\u00e9", "cafe\u0301", "\U0001f980"),
)


class StoreConformance(Committing, Keeping, Evidence, Leasing, Arriving, Trailing):
    """What every store promises."""

    def test_reopening_sees_everything(self) -> None:
        store = self.open_store()
        data = b"blob" * 5000
        history = History(store)
        history.commit(keyframe=b"one", blobs={blob_name(data): data}, stage="s", phase=1)
        history.commit(is_checkpoint=False, transitions=(Transition(1, "completed", pinned=True),))
        history.commit()
        store.put_keyframe("W", make_keyframe(2, b"two"))
        store.settle()
        before = (list(store.entries("W")), store.keyframes("W"), list(store.events("W")), store.head("W"))
        store = self.reopen(store)
        after = (list(store.entries("W")), store.keyframes("W"), list(store.events("W")), store.head("W"))
        assert after == before
        assert store.keyframe("W", 2) == b"two"
        assert store.blob(blob_name(data)) == data
        assert list(store.records("W", 1, 2)) == [history.records[1], history.records[2]]
        History(store).commit()
        store.close()

    def test_a_sound_store_finds_nothing_wrong_and_can_be_counted(self) -> None:
        with self.opened() as store:
            history = History(store)
            history.commit(keyframe=b"one", blobs={blob_name(b"b"): b"b"})
            store.settle()
            assert [finding for finding in store.check() if finding.harm] == []
            assert isinstance(store.stats(), dict)
            assert not store.read_only
            assert isinstance(store.url, str)

    def test_odd_ids_are_kept_apart_or_refused(self) -> None:
        with self.opened() as store:
            kept = {}
            for workflow_id in ODD_IDS:
                try:
                    kept[workflow_id] = History(store, workflow_id).commit(text=workflow_id, keyframe=b"k")
                except InvalidIdError:
                    raises(InvalidIdError, partial(store.entries, workflow_id))
            assert sorted(store.workflows()) == sorted(kept)
            for workflow_id, commit in kept.items():
                assert commit.record is not None
                assert list(store.records(workflow_id, 1, 1)) == [commit.record.data]
                assert store.head(workflow_id) == commit.head

    def test_several_threads_may_commit_at_once(self) -> None:
        with self.opened() as store:
            heads: dict[str, Head] = {}

            def work(workflow_id: str) -> None:
                history = History(store, workflow_id)
                for _ in range(20):
                    history.commit(text="x" * 200)
                heads[workflow_id] = history.head

            in_threads([partial(work, f"W{n}") for n in range(8)])
            assert {workflow_id: store.head(workflow_id) for workflow_id in heads} == heads
            assert all(len(list(store.records(workflow_id, 1, 20))) == 20 for workflow_id in heads)

    def test_threads_that_race_for_one_workflow_lose_no_commit_and_reuse_no_sequence(self) -> None:
        with self.opened() as store:
            won: list[int] = []

            def work() -> None:
                for _ in range(20):
                    draft = History(store).draft()
                    [outcome] = store.commit([draft])
                    if outcome is None and draft.record is not None:
                        won.append(draft.record.entry.sequence)
                    else:
                        assert isinstance(outcome, CheckpointConflictError)

            in_threads([work] * 4)
            assert sorted(won) == list(range(1, len(won) + 1))
            assert store.head("W").sequence == len(won)

    def test_closing_twice_is_fine_and_a_closed_store_answers_nothing(self) -> None:
        store = self.open_store()
        history = History(store)
        history.commit(keyframe=b"one")
        draft = history.draft()
        lease = store.acquire("W", "ann", 0)
        store.close()
        store.close()
        for call in (
            lambda: store.head("W"),
            lambda: store.entries("W"),
            lambda: store.workflows(),
            lambda: store.find("a"),
            lambda: store.records("W", 1, 1),
            lambda: store.keyframes("W"),
            lambda: store.keyframe("W", 1),
            lambda: store.events("W"),
            lambda: store.has_blob("0" * 64),
            lambda: store.blob("0" * 64),
            lambda: store.evidence("W", 1),
            lambda: store.check(),
            lambda: store.stats(),
            lambda: store.commit([draft]),
            lambda: store.remove("W", Removal(sequences=(1,))),
            lambda: store.put_keyframe("W", make_keyframe(1, b"one")),
            lambda: store.acquire("W", "ann", 60),
            lambda: store.renew(lease, 60),
            lambda: store.release(lease),
            lambda: store.lease("W"),
            lambda: store.trail_head("s"),
            lambda: store.sessions(),
            lambda: store.trail("s"),
            lambda: store.payload("s", 1),
            lambda: store.integrate(),
            lambda: store.leaves(),
            lambda: store.waiting(),
            lambda: store.place("s", 1),
            lambda: store.file("a"),
            lambda: store.files("a"),
        ):
            raises(StoreClosedError, call)
