from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import ConfigError, InvalidIdError, LeaseHeldError, LeaseLostError
from holdfast.domain.lease import TTL_MAX_SECONDS, as_of, granted, is_current, refusal, renewed
from holdfast.domain.record import Commit, Head, Lease

NOON = datetime(2026, 1, 11, 12, tzinfo=UTC)
LATER = NOON + timedelta(seconds=31)


def a_lease(owner: str = "ann", token: int = 1, ttl_seconds: float = 30) -> Lease:
    return granted("W", owner, None, token - 1, now=NOON, ttl_seconds=ttl_seconds)


def a_commit(token: int = 0) -> Commit:
    return Commit("W", Head(), token=token)


def test_a_lease_ends_when_its_time_is_over() -> None:
    lease = a_lease()
    assert lease == Lease("W", "ann", 1, "2026-01-11T12:00:30.000000Z", is_live=True)
    assert as_of(lease, NOON + timedelta(seconds=29.9)).is_live
    assert not as_of(lease, NOON + timedelta(seconds=30)).is_live


def test_a_lease_without_time_has_expired_at_once() -> None:
    assert not a_lease(ttl_seconds=0).is_live


def test_a_commit_that_shows_the_last_token_passes_live_or_expired() -> None:
    assert refusal(a_commit(1), a_lease()) is None
    assert refusal(a_commit(1), as_of(a_lease(), LATER)) is None


def test_a_commit_that_shows_another_token_is_fenced_off() -> None:
    refused = refusal(a_commit(1), a_lease("bob", token=2))
    assert isinstance(refused, LeaseLostError)
    assert str(refused) == (
        "lease 1 was followed by lease 2 of 'bob': W. "
        "Stop working on it: others may have gone on. To return, acquire it and load the latest state."
    )
    assert isinstance(refusal(a_commit(1), as_of(a_lease("bob", token=2), LATER)), LeaseLostError)
    assert isinstance(refusal(a_commit(3), a_lease("bob", token=2)), LeaseLostError)


def test_a_commit_that_shows_a_released_token_is_fenced_off() -> None:
    refused = refusal(a_commit(1), None)
    assert isinstance(refused, LeaseLostError)
    assert "lease 1 was released: W" in str(refused)


def test_a_commit_without_a_token_passes_unless_a_lease_is_live() -> None:
    assert refusal(a_commit(), None) is None
    assert refusal(a_commit(), as_of(a_lease(), LATER)) is None
    refused = refusal(a_commit(), a_lease())
    assert isinstance(refused, LeaseHeldError)
    assert str(refused) == (
        "'ann' has the workflow for itself until 2026-01-11T12:00:30.000000Z, this commit shows no lease: W. "
        "Acquire a lease before you write: you get it once this one is released or has expired."
    )


def test_a_workflow_is_refused_to_another_owner_while_its_lease_is_live() -> None:
    with pytest.raises(LeaseHeldError) as caught:
        granted("W", "bob", a_lease(), 1, now=NOON, ttl_seconds=30)
    assert str(caught.value) == (
        "'ann' has the workflow for itself until 2026-01-11T12:00:30.000000Z: W. "
        "Try again then; it is free earlier if its owner releases it. If that process is surely dead, "
        "`holdfast recover WORKFLOW --take-over` ends its lease."
    )


def test_an_owner_takes_over_from_itself_under_a_new_token() -> None:
    assert granted("W", "ann", a_lease(), 1, now=NOON, ttl_seconds=60) == Lease(
        "W", "ann", 2, "2026-01-11T12:01:00.000000Z", is_live=True
    )


def test_an_expired_lease_is_taken_by_anybody() -> None:
    previous = as_of(a_lease(), LATER)
    assert granted("W", "bob", previous, 1, now=LATER, ttl_seconds=30).token == 2


def test_tokens_rise_over_released_leases() -> None:
    assert granted("W", "bob", None, 7, now=NOON, ttl_seconds=30).token == 8


def test_renewing_keeps_the_token_and_counts_from_now_on_live_or_expired() -> None:
    lease = a_lease()
    for current in (lease, as_of(lease, LATER)):
        assert renewed(lease, current, now=LATER, ttl_seconds=10) == Lease(
            "W", "ann", 1, "2026-01-11T12:00:41.000000Z", is_live=True
        )


def test_a_lease_that_was_released_or_taken_cannot_be_renewed() -> None:
    for current in (None, a_lease("bob", token=2), a_lease("ann", token=2)):
        assert not is_current(a_lease(), current)
        with pytest.raises(LeaseLostError):
            renewed(a_lease(), current, now=NOON, ttl_seconds=30)


@pytest.mark.parametrize("ttl_seconds", [-1, -0.001, float("nan"), float("inf"), TTL_MAX_SECONDS + 1])
def test_a_time_to_live_that_is_none_is_refused(ttl_seconds: float) -> None:
    with pytest.raises(ConfigError, match="a lease cannot last"):
        a_lease(ttl_seconds=ttl_seconds)
    with pytest.raises(ConfigError):
        renewed(a_lease(), a_lease(), now=NOON, ttl_seconds=ttl_seconds)


def test_the_longest_lease_is_a_year() -> None:
    assert a_lease(ttl_seconds=TTL_MAX_SECONDS).expires_at == "2027-01-12T12:00:00.000000Z"


@pytest.mark.parametrize("owner", ["", " ann", "a\nb", "x" * 256])
def test_an_owner_is_named_like_everything_else(owner: str) -> None:
    with pytest.raises(InvalidIdError, match="owner"):
        a_lease(owner)


steps = st.lists(
    st.tuples(st.sampled_from(["acquire", "renew", "release", "wait"]), st.sampled_from(["ann", "bob"])),
    max_size=30,
)


@given(steps)
def test_at_most_one_token_passes_and_a_token_that_was_lost_never_passes_again(
    steps: list[tuple[str, str]],
) -> None:
    now, last_token = NOON, 0
    current: Lease | None = None
    held: dict[str, Lease] = {}
    lost: set[int] = set()
    for step, owner in steps:
        before = current
        seen = current and as_of(current, now)
        if step == "wait":
            now += timedelta(seconds=20)
        elif step == "acquire":
            try:
                current = granted("W", owner, seen, last_token, now=now, ttl_seconds=30)
            except LeaseHeldError:
                assert seen is not None and seen.is_live and seen.owner != owner
            else:
                assert current.token > last_token
                last_token = current.token
                held[owner] = current
        elif step == "renew" and owner in held and held[owner].token not in lost:
            current = renewed(held[owner], seen, now=now, ttl_seconds=30)
        elif step == "release" and owner in held and is_current(held[owner], current):
            current = None
        if before is not None and (current is None or current.token != before.token):
            lost.add(before.token)
        passing = [n for n in range(1, last_token + 2) if refusal(a_commit(n), current) is None]
        assert passing == ([current.token] if current else [])
        assert not lost.intersection(passing)
