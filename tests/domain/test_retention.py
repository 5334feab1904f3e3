from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import ConfigError
from holdfast.domain.record import Entry, KeyframeEntry, Removal
from holdfast.domain.retention import RetentionPolicy, Selection, removal, select
from holdfast.domain.time import timestamp_text

NOW = datetime(2026, 6, 1, tzinfo=UTC)
NOTHING = RetentionPolicy(retain_count=0, retain_days=0)


@dataclass(frozen=True, slots=True)
class Workflow:
    """A workflow's listing and keyframes, and what a store does to them."""

    entries: tuple[Entry, ...]
    keyframes: tuple[KeyframeEntry, ...]

    @property
    def keyframe_sequences(self) -> list[int]:
        return [keyframe.sequence for keyframe in self.keyframes]

    @property
    def living(self) -> list[int]:
        return [entry.sequence for entry in self.entries if not entry.pruned]

    def select(self, policy: RetentionPolicy) -> Selection:
        return select(self.entries, self.keyframe_sequences, policy, NOW)

    def removal(self, keep: Sequence[int]) -> Removal:
        return removal(self.entries, self.keyframes, keep)

    def after(self, gone: Removal) -> "Workflow":
        entries = tuple(
            replace(entry, pruned=entry.pruned or entry.sequence in gone.sequences) for entry in self.entries
        )
        return Workflow(entries, tuple(k for k in self.keyframes if k.sequence not in gone.groups))


def a_workflow(count: int, keyframes: Sequence[int], **changes: Sequence[object]) -> Workflow:
    """Number checkpoints 1..count; a keyframe's own record lies in the group before it."""
    entries = []
    for sequence in range(1, count + 1):
        group = max((keyframe for keyframe in keyframes if keyframe < sequence), default=keyframes[0])
        entry = Entry(
            sequence=sequence,
            uuid=f"u-{sequence}",
            timestamp=timestamp_text(NOW - timedelta(days=100)),
            type="agent_complete",
            checksum=f"sha256:{sequence}",
            group=group,
            blobs=(f"r{sequence}",),
            event_seq=10 * sequence,
        )
        own = {name: values[sequence - 1] for name, values in changes.items()}
        entries.append(replace(entry, **own))
    return Workflow(tuple(entries), tuple(KeyframeEntry(k, f"{k}", 100, blobs=(f"k{k}",)) for k in keyframes))


@st.composite
def workflows(draw: st.DrawFn) -> Workflow:
    count = draw(st.integers(1, 30))
    keyframes = sorted({1, *draw(st.lists(st.integers(1, count), max_size=6))})
    ages = draw(st.lists(st.integers(-2, 60), min_size=count, max_size=count))
    blobs = st.lists(st.sampled_from("abcdefgh"), max_size=2).map(tuple)
    workflow = a_workflow(
        count,
        keyframes,
        timestamp=[timestamp_text(NOW - timedelta(days=age)) for age in ages],
        pinned=draw(st.lists(st.booleans(), min_size=count, max_size=count)),
        phase=draw(st.lists(st.none() | st.integers(0, 3), min_size=count, max_size=count)),
        blobs=draw(st.lists(blobs, min_size=count, max_size=count)),
        label=draw(st.lists(st.none() | st.just("kept"), min_size=count, max_size=count)),
        length=draw(st.lists(st.integers(1, 100), min_size=count, max_size=count)),
    )
    own = tuple(replace(keyframe, blobs=draw(blobs)) for keyframe in workflow.keyframes)
    return late_keyframe(draw, replace(workflow, keyframes=own))


def late_keyframe(draw: st.DrawFn, workflow: Workflow) -> Workflow:
    """Let records after a keyframe lie in the group before: keyframes are written in the background."""
    late = draw(st.integers(0, 3))
    entries = list(workflow.entries)
    for keyframe in workflow.keyframe_sequences[1:]:
        before = entries[keyframe - 1].group
        for place in range(keyframe, min(keyframe + late, len(entries))):
            if entries[place].group == keyframe:
                entries[place] = replace(entries[place], group=before)
    return replace(workflow, entries=tuple(entries))


POLICIES = st.builds(
    RetentionPolicy,
    retain_count=st.integers(0, 12),
    retain_days=st.integers(0, 50),
    max_per_phase=st.none() | st.integers(0, 4),
    keep_within_seconds=st.integers(0, 10 * 86_400),
    keep_daily=st.integers(0, 8),
    keep_weekly=st.integers(0, 5),
    keep_tagged=st.booleans(),
    max_bytes=st.none() | st.integers(0, 1_000),
)


def needed_to_restore(workflow: Workflow, sequence: int, keyframes: Sequence[int]) -> set[int]:
    """Name the groups that hold the keyframe before a checkpoint and the records up to it."""
    keyframe = max(k for k in keyframes if k <= sequence)
    records = [entry for entry in workflow.entries if keyframe < entry.sequence <= sequence]
    return {keyframe, workflow.entries[sequence - 1].group, *(entry.group for entry in records)}


def test_the_last_ones_stay():
    assert a_workflow(20, [1]).select(RetentionPolicy(retain_count=3)).keep == (18, 19, 20)


def test_young_ones_stay():
    ages = [40, 31, 30, 29, 1]
    stamps = [timestamp_text(NOW - timedelta(days=age)) for age in ages]
    workflow = a_workflow(5, [1], timestamp=stamps)
    assert workflow.select(RetentionPolicy(retain_count=0)) == Selection(keep=(4, 5), remove=(1, 2, 3))


def test_the_cap_per_phase_spares_pinned_ones_and_those_without_a_phase():
    workflow = a_workflow(
        8,
        [1],
        phase=[1, 1, 1, None, None, 2, 2, 2],
        pinned=[True, *([False] * 7)],
    )
    assert workflow.select(RetentionPolicy(max_per_phase=1)).keep == (1, 3, 4, 5, 7, 8)


def test_with_one_keyframe_the_newest_two_stay():
    assert a_workflow(9, [1]).select(NOTHING).keep == (8, 9)


def test_the_two_that_always_stay_do_not_hang_on_one_keyframe():
    assert a_workflow(9, [1, 4, 6]).select(NOTHING).keep == (5, 9)


def test_a_checkpoint_before_every_keyframe_is_not_counted_as_safe():
    workflow = a_workflow(9, [6])
    assert workflow.select(NOTHING).keep == (8, 9)


def test_a_single_checkpoint_stays_and_none_is_none():
    assert a_workflow(1, [1]).select(NOTHING) == Selection(keep=(1,), remove=())
    assert select([], [], NOTHING, NOW) == Selection(keep=(), remove=())


def test_an_enormous_number_of_days_keeps_everything():
    assert a_workflow(3, [1]).select(RetentionPolicy(retain_days=10**12)).remove == ()


def test_the_newest_of_each_day_and_of_each_week_stay():
    # Days before a Monday, which begins a week.
    ages = [22, 15, 15, 8, 2, 1, 1, 0]
    stamps = [timestamp_text(NOW - timedelta(days=age)) for age in ages]
    workflow = a_workflow(8, [1], timestamp=stamps)
    assert workflow.select(replace(NOTHING, keep_daily=3)).keep == (5, 7, 8)
    assert workflow.select(replace(NOTHING, keep_weekly=4)).keep == (3, 4, 7, 8)


def test_an_age_may_be_given_by_the_hour():
    stamps = [timestamp_text(NOW - timedelta(hours=hours)) for hours in (40, 37, 36, 35, 1)]
    workflow = a_workflow(5, [1], timestamp=stamps)
    assert workflow.select(replace(NOTHING, keep_within_seconds=36 * 3600)).keep == (4, 5)


def test_those_with_a_label_stay_if_that_is_wanted():
    workflow = a_workflow(6, [1], label=["released", *[None] * 5])
    assert workflow.select(NOTHING).keep == (5, 6)
    assert workflow.select(replace(NOTHING, keep_tagged=True)).keep == (1, 5, 6)


def test_the_newest_that_fit_stay_and_nothing_older_than_what_does_not():
    workflow = a_workflow(6, [1], length=[10, 10, 10, 50, 10, 10])
    kept = {limit: workflow.select(RetentionPolicy(max_bytes=limit)).keep for limit in (0, 69, 75, 80)}
    assert kept == {0: (5, 6), 69: (5, 6), 75: (4, 5, 6), 80: (3, 4, 5, 6)}


@pytest.mark.sweep
@given(workflows(), POLICIES)
def test_no_rule_keeps_less_than_it_promises(workflow, policy):
    """Without limits every rule has its way; what each promises is worked out here in the plainest way."""
    keep = set(workflow.select(replace(policy, max_per_phase=None, max_bytes=None)).keep)
    living = [entry for entry in workflow.entries if not entry.pruned]
    ages = {entry.sequence: NOW - datetime.fromisoformat(entry.timestamp) for entry in living}
    assert {entry.sequence for entry in living[len(living) - min(policy.retain_count, len(living)) :]} <= keep
    assert {sequence for sequence, age in ages.items() if age < timedelta(days=policy.retain_days)} <= keep
    young = timedelta(seconds=policy.keep_within_seconds)
    assert {sequence for sequence, age in ages.items() if age < young} <= keep
    if policy.keep_tagged:
        assert {entry.sequence for entry in living if entry.label} <= keep
    days = [entry.timestamp[:10] for entry in living]
    last = list(dict.fromkeys(reversed(days)))[: policy.keep_daily]
    assert {max(e.sequence for e in living if e.timestamp[:10] == day) for day in last} <= keep


@pytest.mark.sweep
@given(workflows(), POLICIES)
def test_limits_only_ever_take_away_and_never_what_always_stays(workflow, policy):
    without = set(workflow.select(replace(policy, max_per_phase=None, max_bytes=None)).keep)
    keep = set(workflow.select(policy).keep)
    always = set(workflow.select(replace(NOTHING, keep_tagged=policy.keep_tagged, max_bytes=0)).keep)
    assert always <= keep <= without
    if policy.max_bytes is not None:
        stored = sum(workflow.entries[sequence - 1].length for sequence in keep)
        assert stored <= policy.max_bytes or keep == always


@pytest.mark.parametrize(
    "name", ["retain_count", "retain_days", "max_per_phase", "keep_daily", "keep_within_seconds", "max_bytes"]
)
def test_a_negative_policy_is_refused(name):
    with pytest.raises(ConfigError, match=name):
        RetentionPolicy(**{name: -1})


@pytest.mark.parametrize("wrong", ["10", float("nan"), None])
def test_a_policy_of_what_is_no_number_is_refused(wrong):
    with pytest.raises(ConfigError, match="retain_count"):
        RetentionPolicy(wrong)


@pytest.mark.sweep
@given(workflows(), POLICIES)
def test_keep_and_remove_share_out_the_living(workflow, policy):
    selection = workflow.select(policy)
    assert sorted(selection.keep + selection.remove) == workflow.living


@pytest.mark.sweep
@given(workflows(), POLICIES)
def test_where_the_oldest_one_tells_that_all_stays_none_is_removed(workflow, policy):
    first, *others = workflow.entries
    oldest = replace(first, timestamp=min(entry.timestamp for entry in workflow.entries))
    workflow = replace(workflow, entries=(oldest, *others))
    if policy.keeps_all(oldest, NOW):
        assert workflow.select(policy).remove == ()


def test_what_is_old_or_limited_or_gone_is_looked_at_as_a_whole():
    [oldest, *_] = a_workflow(3, [1]).entries
    young = replace(oldest, timestamp=timestamp_text(NOW - timedelta(days=1)))
    assert RetentionPolicy(retain_days=2).keeps_all(young, NOW)
    assert not RetentionPolicy(retain_days=1).keeps_all(young, NOW)
    assert not RetentionPolicy(retain_days=2).keeps_all(replace(young, pruned=True), NOW)
    for limit in ({"max_per_phase": 9}, {"max_bytes": 10**9}):
        assert not RetentionPolicy(retain_days=2, **limit).keeps_all(young, NOW)


@pytest.mark.sweep
@given(workflows(), POLICIES)
def test_two_stay_and_do_not_hang_on_one_keyframe(workflow, policy):
    keep = workflow.select(policy).keep
    assert len(keep) >= min(2, len(workflow.living))
    assert keep[-1] == workflow.living[-1]
    if len(workflow.keyframes) > 1:
        assert any(sequence < workflow.keyframe_sequences[-1] for sequence in keep)


@pytest.mark.sweep
@given(workflows(), POLICIES)
def test_pinned_ones_stay(workflow, policy):
    keep = workflow.select(policy).keep
    assert {entry.sequence for entry in workflow.entries if entry.pinned} <= set(keep)


@pytest.mark.sweep
@given(workflows(), POLICIES)
def test_selecting_again_removes_nothing_more(workflow, policy):
    keep = workflow.select(policy).keep
    later = workflow.after(workflow.removal(keep))
    assert later.select(policy) == Selection(keep=keep, remove=())
    assert later.removal(keep) == Removal(sequences=())


@pytest.mark.sweep
@given(workflows(), POLICIES)
def test_everything_a_kept_checkpoint_needs_survives(workflow, policy):
    keep = workflow.select(policy).keep
    gone = workflow.removal(keep)
    left = workflow.after(gone).keyframe_sequences
    for sequence in keep:
        before = needed_to_restore(workflow, sequence, workflow.keyframe_sequences)
        assert before == needed_to_restore(workflow, sequence, left)
        assert not before & set(gone.groups)


@pytest.mark.sweep
@given(workflows(), POLICIES)
def test_the_newest_survives_the_loss_of_its_keyframe(workflow, policy):
    keep = workflow.select(policy).keep
    gone = workflow.removal(keep)
    left = workflow.after(gone).keyframe_sequences
    usable = [keyframe for keyframe in workflow.keyframe_sequences if keyframe <= keep[-1]]
    if len(usable) > 1:
        assert usable[-2] in left
        assert not needed_to_restore(workflow, keep[-1], usable[:-1]) & set(gone.groups)


@pytest.mark.sweep
@given(workflows(), POLICIES)
def test_no_blob_that_something_left_refers_to_goes(workflow, policy):
    gone = workflow.removal(workflow.select(policy).keep)
    holders = [(entry.group, entry.blobs) for entry in workflow.entries]
    holders += [(keyframe.sequence, keyframe.blobs) for keyframe in workflow.keyframes]
    staying = {blob for group, blobs in holders if group not in gone.groups for blob in blobs}
    going = {blob for group, blobs in holders if group in gone.groups for blob in blobs}
    assert set(gone.blobs) == going - staying


@pytest.mark.sweep
@given(workflows(), POLICIES)
def test_the_events_of_every_kept_checkpoint_stay_and_so_does_its_own(workflow, policy):
    keep = workflow.select(policy).keep
    gone = workflow.removal(keep)
    if gone.sequences:
        assert gone.events_through == workflow.entries[keep[0] - 1].event_seq - 1
    else:
        assert (gone.events_through, gone.blobs) == (0, ()) or gone.groups


def test_groups_nobody_needs_go_with_their_blobs():
    gone = a_workflow(12, [1, 4, 7, 10]).removal([12])
    assert gone == Removal(
        sequences=tuple(range(1, 12)),
        groups=(1, 4),
        events_through=119,
        blobs=tuple(sorted(["k1", "k4", *(f"r{sequence}" for sequence in range(1, 8))])),
    )


def test_a_kept_checkpoint_in_the_middle_holds_its_group_only():
    assert a_workflow(12, [1, 4, 7, 10]).removal([5, 12]).groups == (1,)


def test_the_record_of_a_kept_keyframe_stays_with_the_group_before():
    assert a_workflow(12, [1, 4, 7, 10]).removal([4, 12]).groups == ()


def test_what_was_pruned_before_is_not_removed_again():
    workflow = a_workflow(5, [1], pruned=[True, True, False, False, False])
    assert workflow.removal([4, 5]).sequences == (3,)


def test_keeping_nothing_removes_nothing():
    assert a_workflow(5, [1, 3]).removal([]) == Removal(sequences=())


def test_without_a_keyframe_every_record_is_needed():
    workflow = replace(a_workflow(5, [1, 3]), keyframes=())
    assert workflow.removal([5]).groups == ()


def test_a_group_whose_keyframe_was_lost_goes_when_nobody_needs_it():
    workflow = a_workflow(9, [1, 4, 7])
    without_first = replace(workflow, keyframes=workflow.keyframes[1:])
    assert without_first.removal([9]).groups == workflow.removal([9]).groups == (1,)


def test_a_group_that_went_before_is_not_removed_again():
    workflow = a_workflow(12, [1, 4, 7, 10])
    gone = workflow.removal([12])
    assert gone.groups and workflow.after(gone).removal([12]).groups == ()
