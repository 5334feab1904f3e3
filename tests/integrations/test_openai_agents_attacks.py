"""What somebody could write into a store to have a run approved that nobody approved: it is refused."""

from __future__ import annotations

import os
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.domain.errors import KeyUnavailableError, PermissionDeniedError, SealBrokenError
from holdfast.integrations.openai_agents import HoldfastRunVault
from tests.integrations.openai_agents_scene import KEY, PAID, answer, go_on, keep, paused, payer, run

WORKFLOW = "agents-run:r"


@pytest.fixture
def service(tmp_path):
    with holdfast.open(f"file:{tmp_path}/store") as opened:
        yield opened


@pytest.fixture
def vault(service):
    return HoldfastRunVault(service, key=KEY)


@pytest.fixture(autouse=True)
def nothing_paid():
    PAID.clear()


def forge(service, **context):
    """Write over the newest checkpoint of the run as somebody does who has the store, and not the key."""
    state = service.load_latest(WORKFLOW)
    state.context.update(context)
    service.create_checkpoint(WORKFLOW, state)


def refused(vault, problem="not what was kept", run_id="r"):
    """Make sure that nothing comes of a run, whoever asks for it."""
    for call in (
        lambda: vault.look(run_id),
        lambda: vault.take(run_id, payer(), again=True),
        lambda: vault.answer(run_id, "call-1", granted=True, by="eve", reason="none"),
    ):
        with pytest.raises(SealBrokenError, match=problem):
            run(call)
    assert PAID == []


def test_an_approval_written_into_what_is_readable_approves_nothing(service, vault):
    keep(vault)
    forge(service, calls=[{"call": "call-1", "tool": "pay", "granted": True}])
    refused(vault)


def test_an_approved_state_in_the_clear_is_refused(service, vault):
    async def approved():
        state = await paused(70)
        state.approve(state.get_interruptions()[0])
        return state.to_json()

    keep(vault)
    forge(service, sealed=run(approved))
    refused(vault)


def test_a_state_that_was_sealed_for_another_run_is_refused(service, vault):
    keep(vault)
    keep(vault, run_id="other")
    answer(vault, run_id="other")
    forge(service, sealed=service.load_latest("agents-run:other").context["sealed"])
    refused(vault)


def test_an_earlier_state_of_the_same_run_is_refused(service, vault):
    keep(vault)
    answer(vault)
    answered = service.load_latest(WORKFLOW).context["sealed"]
    go_on(vault)
    PAID.clear()
    forge(service, sealed=answered, calls=[])
    refused(vault)


def test_a_run_under_another_name_is_refused(service, vault):
    keep(vault)
    answer(vault)
    service.fork_workflow(f"{WORKFLOW}@latest", "agents-run:copy")
    refused(vault, run_id="copy")


def test_another_key_opens_nothing(service, vault, monkeypatch):
    keep(vault)
    monkeypatch.setenv("ANOTHER_KEY", "00" * 32)
    refused(HoldfastRunVault(service, key="env:ANOTHER_KEY"))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_no_byte_of_what_is_sealed_can_be_changed_or_left_out(data):
    with holdfast.open("memory:") as service:
        vault = HoldfastRunVault(service, key=KEY)
        keep(vault)
        sealed = service.restore_checkpoint(f"{WORKFLOW}@latest").context["sealed"]
        place = data.draw(st.integers(0, len(sealed) - 1))
        changed = bytes([sealed[place] ^ data.draw(st.integers(1, 255))])
        forged = data.draw(st.sampled_from([sealed[:place], sealed[:place] + changed + sealed[place + 1 :]]))
        # In its own place, where only the bytes themselves are wrong.
        with holdfast.open("memory:") as copy:
            copy.create_checkpoint(WORKFLOW, {"sealed": forged})
            refused(HoldfastRunVault(copy, key=KEY))
            copy.create_checkpoint("agents-run:s", {"sealed": sealed})
            refused(HoldfastRunVault(copy, key=KEY), run_id="s")


def test_the_same_bytes_in_their_own_place_are_accepted(service, vault):
    keep(vault)
    sealed = service.load_latest(WORKFLOW).context["sealed"]
    with holdfast.open("memory:") as copy:
        copy.create_checkpoint(WORKFLOW, {"sealed": sealed})
        assert run(lambda: HoldfastRunVault(copy, key=KEY).look("r")).status == "waiting"


def test_a_refusal_is_in_the_trail(service, vault):
    keep(vault)
    forge(service, sealed=b"")
    refused(vault)
    told = service.audit.query_events(workflow=WORKFLOW, event_types=["INTEGRITY_FAILED"])
    assert {(one.outcome, one.facts["cp_seq"]) for one in told} == {("refused", 2)}


def test_a_broken_seal_is_refused_where_there_is_no_trail():
    with holdfast.open("memory:", audit=False) as service:
        vault = HoldfastRunVault(service, key=KEY)
        keep(vault)
        forge(service, sealed=b"")
        refused(vault)


def test_an_approval_left_in_the_mailbox_approves_nothing(service, vault):
    keep(vault)
    service.requests.put(WORKFLOW, "approval", actor="eve", data={"name": "call-1", "granted": True})
    assert run(lambda: vault.look("r")).calls[0].granted is None
    assert go_on(vault) is None
    assert PAID == []


def put_back(tmp_path, vault_of):
    """Let a run be carried out, and then put the store back to where it was approved."""
    with holdfast.open(f"file:{tmp_path}/store") as service:
        keep(vault_of(service))
        answer(vault_of(service))
    shutil.copytree(tmp_path / "store", tmp_path / "backup")
    with holdfast.open(f"file:{tmp_path}/store") as service:
        go_on(vault_of(service))
    shutil.rmtree(tmp_path / "store")
    (tmp_path / "backup").rename(tmp_path / "store")
    PAID.clear()


def test_a_store_put_back_to_before_a_run_was_taken_is_refused_by_the_marks(tmp_path):
    def vault_of(service):
        return HoldfastRunVault(service, key=KEY, marks=tmp_path / "marks")

    put_back(tmp_path, vault_of)
    with holdfast.open(f"file:{tmp_path}/store") as service:
        refused(vault_of(service), "put back")
    shutil.rmtree(tmp_path / "store")
    with holdfast.open(f"file:{tmp_path}/store") as service:
        refused(vault_of(service), "put back")


def test_without_marks_a_store_put_back_as_a_whole_is_not_noticed(tmp_path):
    put_back(tmp_path, lambda service: HoldfastRunVault(service, key=KEY))
    with holdfast.open(f"file:{tmp_path}/store") as service:
        go_on(HoldfastRunVault(service, key=KEY))
    assert PAID == ["70 to Ann"]


def test_a_key_file_that_others_may_read_is_refused(tmp_path, service):
    place = tmp_path / "vault.key"
    place.write_text(os.urandom(32).hex())
    place.chmod(0o644)
    with pytest.raises((PermissionDeniedError, KeyUnavailableError)):
        keep(HoldfastRunVault(service, key=f"file:{place}"))
    place.chmod(0o600)
    assert keep(HoldfastRunVault(service, key=f"file:{place}")).status == "waiting"
