"""`holdfast recover --plan` says what going back costs."""

from __future__ import annotations

import contextlib
import io
import json

import pytest

import holdfast
from holdfast import RunOptions
from holdfast.cli import demo_team


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    place = str(tmp_path_factory.mktemp("cost") / "store")
    options = RunOptions(handles_signals=False, config={"thinking_seconds": 0.001})
    with holdfast.open(place, retain=False) as service, contextlib.redirect_stdout(io.StringIO()):
        demo_team.team.run_sync(service, "kelp", options=options)
        service.create_checkpoint("plain", {"n": 1})
    return place


def test_steps_that_are_lost_and_effects_that_may_happen_twice_are_named(run, store):
    shown = run("recover", "kelp", "--to", "9", "--plan", "--store", store).out
    assert "  lost     " in shown and "publish" in shown
    assert "effect   post of publish may happen twice" in shown


def test_programs_are_told_the_same(run, store):
    told = json.loads(run("recover", "kelp", "--to", "9", "--plan", "--json", "--store", store).out)
    assert "publish" in [step["step_id"] for step in told["steps_lost"]]
    assert [(one["name"], one["doubt"]) for one in told["effects_at_risk"]] == [("post", "forgotten")]


def test_where_nothing_is_lost_nothing_is_said(run, store):
    shown = run("recover", "plain", "--plan", "--store", store).out
    assert "lost" not in shown and "twice" not in shown


def test_what_a_plan_warns_of_is_refused_until_it_is_allowed(run, store):
    refused = run("recover", "kelp", "--to", "9", "--json", "--store", store)
    assert (refused.exit_code, json.loads(refused.err)["code"]) == (31, "effects_at_risk")
    with holdfast.open(store) as service:
        assert "WORKFLOW_RECOVERED" not in [entry.type for entry in service.audit.query_events()]
    assert run("recover", "kelp", "--to", "9", "--allow-repeat-effects", "--store", store).exit_code == 0
    assert run("recover", "plain", "--store", store).exit_code == 0
