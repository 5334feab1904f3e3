"""What a store promises about leases, and about commits that show a token."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from holdfast.conformance.history import History, Opening, blob_name, in_threads, raises
from holdfast.domain.errors import (
    CheckpointConflictError,
    ConfigError,
    InvalidIdError,
    LeaseHeldError,
    LeaseLostError,
)
from holdfast.domain.record import Head, Lease, Removal
from holdfast.domain.time import parse_timestamp

#: No test waits for time to pass: a lease is either far from its end, or over as it is granted.
LONG_SECONDS = 3600.0
OVER_SECONDS = 0.0

#: Ids that are told apart, and are never paths.
ODD_IDS = ("a", "A", "a/b", "../a", "K", "\u212a", "caf\u00e9", "cafe\u0301", "\U0001f980", "a.json")


class Leasing(Opening):
    """Leases, their tokens, and the fence they build."""

    # -- taking and giving back --------------------------------------------------------------

    def test_an_owner_gets_a_workflow_for_a_time(self) -> None:
        with self.opened() as store:
            assert store.lease("W") is None
            lease = store.acquire("W", "ann", LONG_SECONDS)
            assert (lease.workflow_id, lease.owner, lease.is_live) == ("W", "ann", True)
            assert lease.token > 0
            assert parse_timestamp(lease.expires_at)
            assert store.lease("W") == lease
            assert store.lease("V") is None

    def test_a_live_lease_is_refused_to_another_owner(self) -> None:
        with self.opened() as store:
            lease = store.acquire("W", "ann", LONG_SECONDS)
            error = raises(LeaseHeldError, lambda: store.acquire("W", "bob", LONG_SECONDS))
            assert "ann" in str(error) and lease.expires_at in str(error)
            assert store.lease("W") == lease
            assert store.acquire("V", "bob", LONG_SECONDS).owner == "bob"

    def test_an_owner_takes_over_from_itself_and_fences_the_earlier_token_off(self) -> None:
        with self.opened() as store:
            history = History(store)
            first = store.acquire("W", "ann", LONG_SECONDS)
            second = store.acquire("W", "ann", LONG_SECONDS)
            assert second.token > first.token
            assert isinstance(store.commit([history.draft(token=first.token)])[0], LeaseLostError)
            history.commit(token=second.token)

    def test_an_expired_lease_may_be_taken_by_anybody(self) -> None:
        with self.opened() as store:
            expired = store.acquire("W", "ann", OVER_SECONDS)
            assert not expired.is_live
            assert store.lease("W") == expired
            taken = store.acquire("W", "bob", LONG_SECONDS)
            assert taken.token > expired.token
            assert store.lease("W") == taken

    def test_renewing_keeps_the_token_and_gives_new_time(self) -> None:
        with self.opened() as store:
            lease = store.acquire("W", "ann", LONG_SECONDS)
            renewed = store.renew(lease, 2 * LONG_SECONDS)
            assert renewed == replace(lease, expires_at=renewed.expires_at)
            assert renewed.expires_at > lease.expires_at
            assert store.lease("W") == renewed
            assert not store.renew(lease, OVER_SECONDS).is_live
            assert store.acquire("W", "bob", LONG_SECONDS).token > lease.token

    def test_an_expired_lease_may_be_renewed_while_nobody_took_it(self) -> None:
        with self.opened() as store:
            lease = store.renew(store.acquire("W", "ann", OVER_SECONDS), LONG_SECONDS)
            assert lease.is_live
            raises(LeaseHeldError, lambda: store.acquire("W", "bob", LONG_SECONDS))

    def test_a_lease_that_is_lost_cannot_be_renewed(self) -> None:
        with self.opened() as store:
            lost = store.acquire("W", "ann", OVER_SECONDS)
            taken = store.acquire("W", "bob", LONG_SECONDS)
            raises(LeaseLostError, lambda: store.renew(lost, LONG_SECONDS))
            assert store.lease("W") == taken
            store.release(taken)
            raises(LeaseLostError, lambda: store.renew(taken, LONG_SECONDS))
            assert store.lease("W") is None
            raises(LeaseLostError, lambda: store.renew(replace(taken, workflow_id="V"), LONG_SECONDS))
            assert store.lease("V") is None

    def test_a_released_workflow_is_free_and_tokens_keep_rising(self) -> None:
        with self.opened() as store:
            tokens = []
            for owner in ("ann", "bob", "ann"):
                lease = store.acquire("W", owner, LONG_SECONDS)
                tokens.append(lease.token)
                store.release(lease)
                store.release(lease)
                assert store.lease("W") is None
            assert tokens == sorted(set(tokens))

    def test_releasing_a_lost_lease_changes_nothing(self) -> None:
        with self.opened() as store:
            first = store.acquire("W", "ann", OVER_SECONDS)
            second = store.acquire("W", "bob", LONG_SECONDS)
            third = store.acquire("W", "bob", LONG_SECONDS)
            for lost in (first, second, replace(third, workflow_id="V")):
                store.release(lost)
            assert store.lease("W") == third

    def test_what_cannot_be_an_owner_or_a_time_is_refused(self) -> None:
        with self.opened() as store:
            for owner in ("", " ann", "a\nb", "x" * 256):
                raises(InvalidIdError, partial(store.acquire, "W", owner, LONG_SECONDS))
            for ttl_seconds in (-1.0, float("nan"), float("inf"), 1e12):
                raises(ConfigError, partial(store.acquire, "W", "ann", ttl_seconds))
            assert store.lease("W") is None
            lease = store.acquire("W", "l'\u00e9quipe \U0001f980 %s", LONG_SECONDS)
            raises(ConfigError, lambda: store.renew(lease, -1.0))
            assert store.lease("W") == lease

    def test_leases_of_odd_ids_are_kept_apart(self) -> None:
        with self.opened() as store:
            leases = {name: store.acquire(name, f"of {name}", LONG_SECONDS) for name in ODD_IDS}
            assert {name: store.lease(name) for name in ODD_IDS} == leases

    # -- the fence ---------------------------------------------------------------------------

    def test_a_commit_that_shows_the_token_passes(self) -> None:
        with self.opened() as store:
            history = History(store)
            history.commit()
            lease = store.acquire("W", "ann", LONG_SECONDS)
            history.commit(token=lease.token)
            store.renew(lease, LONG_SECONDS)
            history.commit(token=lease.token)
            assert store.head("W") == history.head

    def test_a_token_that_has_expired_passes_while_nobody_took_the_workflow(self) -> None:
        with self.opened() as store:
            lease = store.acquire("W", "ann", OVER_SECONDS)
            History(store).commit(token=lease.token)

    def test_a_stale_token_is_refused_and_only_its_commit_is_not_kept(self) -> None:
        with self.opened() as store:
            late, right, other = History(store), History(store), History(store, "V")
            lost = store.acquire("W", "ann", OVER_SECONDS)
            taken = store.acquire("W", "bob", LONG_SECONDS)
            blob = {blob_name(b"late"): b"late"}
            group = [
                late.draft(token=lost.token, text="late", keyframe=b"late", blobs=blob),
                other.draft(),
                right.draft(token=taken.token, text="right"),
            ]
            outcomes = store.commit(group)
            assert isinstance(outcomes[0], LeaseLostError)
            assert outcomes[1:] == [None, None]
            assert (store.head("V"), store.head("W")) == (group[1].head, group[2].head)
            assert group[2].record is not None
            assert list(store.records("W", 1, 1)) == [group[2].record.data]
            assert list(store.events("W")) == [group[2].events[0].data]
            assert store.keyframes("W") == []
            assert not store.has_blob(blob_name(b"late"))

    def test_who_lost_the_lease_is_told_so_even_if_it_is_behind_too(self) -> None:
        with self.opened() as store:
            late, right = History(store), History(store)
            lost = store.acquire("W", "ann", OVER_SECONDS)
            taken = store.acquire("W", "bob", OVER_SECONDS)
            right.commit(token=taken.token)
            assert isinstance(store.commit([late.draft(token=lost.token)])[0], LeaseLostError)
            [behind] = store.commit([late.draft(token=taken.token)])
            assert type(behind) is CheckpointConflictError
            assert store.head("W") == right.head

    def test_a_released_token_is_refused(self) -> None:
        with self.opened() as store:
            history = History(store)
            lease = store.acquire("W", "ann", LONG_SECONDS)
            store.release(lease)
            assert isinstance(store.commit([history.draft(token=lease.token)])[0], LeaseLostError)
            assert store.head("W") == Head()
            history.commit()

    def test_a_token_that_was_never_granted_is_refused(self) -> None:
        with self.opened() as store:
            lease = store.acquire("W", "ann", LONG_SECONDS)
            for workflow_id, token in (("W", lease.token + 1), ("V", lease.token)):
                [outcome] = store.commit([History(store, workflow_id).draft(token=token)])
                assert isinstance(outcome, LeaseLostError)
            assert list(store.workflows()) == []

    def test_a_commit_without_a_token_is_refused_while_a_lease_is_live(self) -> None:
        with self.opened() as store:
            history, other = History(store), History(store, "V")
            history.commit()
            lease = store.acquire("W", "ann", LONG_SECONDS)
            outcomes = store.commit([history.draft(text="stray"), other.draft()])
            assert isinstance(outcomes[0], LeaseHeldError)
            assert "ann" in str(outcomes[0])
            assert outcomes[1] is None
            assert store.head("W") == history.head
            store.renew(lease, OVER_SECONDS)
            history.commit()
            store.release(store.renew(lease, LONG_SECONDS))
            history.commit()

    # -- beside everything else --------------------------------------------------------------

    def test_a_lease_is_no_part_of_a_workflow(self) -> None:
        with self.opened() as store:
            lease = store.acquire("W", "ann", LONG_SECONDS)
            store.settle()
            assert list(store.workflows()) == []
            assert store.head("W") == Head()
            assert (list(store.entries("W")), list(store.events("W")), store.find("")) == ([], [], [])
            commit = History(store).commit(token=lease.token)
            store.release(lease)
            assert list(store.workflows()) == ["W"]
            assert list(store.events("W")) == [commit.events[0].data]
            assert [finding for finding in store.check() if finding.harm] == []

    def test_removing_checkpoints_leaves_the_lease(self) -> None:
        with self.opened() as store:
            lease = store.acquire("W", "ann", LONG_SECONDS)
            history = History(store)
            history.commit(token=lease.token, keyframe=b"one")
            history.commit(token=lease.token, keyframe=b"two", group=2)
            store.remove("W", Removal(sequences=(1,), groups=(1,), events_through=1))
            assert store.lease("W") == lease
            history.commit(token=lease.token, group=2)

    def test_leases_outlive_the_closing_of_the_store(self) -> None:
        store = self.open_store()
        lease = store.acquire("W", "ann", LONG_SECONDS)
        released = store.acquire("V", "ann", LONG_SECONDS)
        store.release(released)
        store = self.reopen(store)
        assert store.lease("W") == lease
        raises(LeaseHeldError, lambda: store.acquire("W", "bob", LONG_SECONDS))
        history = History(store)
        assert isinstance(store.commit([history.draft()])[0], LeaseHeldError)
        history.commit(token=lease.token)
        assert store.lease("V") is None
        [outcome] = store.commit([History(store, "V").draft(token=released.token)])
        assert isinstance(outcome, LeaseLostError)
        assert store.acquire("V", "bob", LONG_SECONDS).token > released.token
        store.close()

    def test_of_owners_that_race_for_a_workflow_one_wins(self) -> None:
        with self.opened() as store:
            for workflow_id in ("A", "B", "C", "D", "E"):
                start = threading.Barrier(4)
                won: list[Lease] = []

                def work(owner: str, workflow_id: str, start: threading.Barrier, won: list[Lease]) -> None:
                    start.wait()
                    with suppress(LeaseHeldError):
                        won.append(store.acquire(workflow_id, owner, LONG_SECONDS))

                in_threads([partial(work, f"owner {n}", workflow_id, start, won) for n in range(4)])
                assert [store.lease(workflow_id)] == won

    def test_once_a_workflow_was_taken_over_its_head_stands_still(self) -> None:
        """A commit on its way while another owner takes over is in before that, or not at all."""
        with self.opened() as store:
            lost = store.acquire("W", "ann", OVER_SECONDS)
            has_begun, is_over = threading.Event(), threading.Event()

            def write_on() -> None:
                history = History(store)
                outcome = None
                while outcome is None and not is_over.is_set():
                    draft = history.draft(token=lost.token)
                    [outcome] = store.commit([draft])
                    history.follow(draft)
                    has_begun.set()
                [outcome] = store.commit([history.draft(token=lost.token)])
                assert isinstance(outcome, LeaseLostError)

            def take_over() -> None:
                has_begun.wait()
                taken = store.acquire("W", "bob", LONG_SECONDS)
                history = History(store)
                for _ in range(5):
                    history.commit(token=taken.token)

            in_threads([_then(write_on, has_begun), _then(take_over, is_over)])


def _then(call: Callable[[], None], done: threading.Event) -> Callable[[], None]:
    """Make a call that tells when it has ended, however it did."""

    def told() -> None:
        try:
            call()
        finally:
            done.set()

    return told
