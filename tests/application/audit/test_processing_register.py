from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.application.audit.processing_register import (
    REGISTER_FILE,
    Observed,
    check_annotations,
    make_register,
    read_annotations,
    render_register,
    value_text,
    write_annotations,
)
from holdfast.domain.errors import ConfigError
from holdfast.domain.trail import read_fields
from tests.application.services import make_service
from tests.application.told import Page, check_page

SAID: dict[str, Any] = {
    "controller": {"name": "Example GmbH", "contact": "privacy@example.com"},
    "activities": [
        {
            "name": "Offers",
            "purposes": ["to compare offers"],
            "legal_basis": "contract",
            "subjects": ["suppliers"],
            "data": ["contact data"],
            "recipients": ["purchasing"],
            "transfers": [],
            "workflows": ["OFFER-*"],
        }
    ],
}
OBSERVED = Observed(
    ("OFFER-1", "OFFER-2", "PAY-1"),
    12,
    2,
    "2026-01-11T14:30:00.000000Z",
    "2026-01-12T14:30:00.000000Z",
    {"retention": {"trail_days_min": 183}, "encryption": {"on": True}},
)


def test_the_register_has_what_was_said_and_what_was_seen():
    register = make_register(SAID, OBSERVED)
    assert register["parties"] == {"controller": SAID["controller"]}
    assert register["activities"][0]["workflows_now"] == 2
    assert register["time_limits"] == {"trail_days_min": 183}
    assert register["measures"] == {"encryption": {"on": True}}
    assert register["observed"]["trail_entries"] == 12


def test_workflows_that_no_activity_covers_are_named():
    register = make_register(SAID, OBSERVED)
    assert register["workflows_without_activity"] == ["PAY-1"]
    assert register["missing"] == ["an activity for 1 workflow"]


def test_what_nobody_said_is_missing_and_not_made_up():
    assert make_register({}, OBSERVED)["missing"] == [
        "name of the controller",
        "contact of the controller",
        "processing activities",
        "an activity for 3 workflows",
    ]
    half = {**SAID, "activities": [{"name": "Offers", "workflows": ["*"]}]}
    assert make_register(half, OBSERVED)["missing"] == [
        "purposes of Offers",
        "subjects of Offers",
        "data of Offers",
        "recipients of Offers",
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        {"controler": {}},
        {"controller": "Example GmbH"},
        {"controller": {"name": 1}},
        {"controller": {"phone": "1"}},
        {"activities": {}},
        {"activities": ["Offers"]},
        {"activities": [{"purposes": []}]},
        {"activities": [{"name": "Offers", "purposes": "one"}]},
        {"activities": [{"name": "Offers", "data": [1]}]},
        {"activities": [{"name": "Offers", "legal_basis": []}]},
        {"activities": [{"name": "Offers", "purpose": []}]},
    ],
)
def test_a_description_that_is_none_is_refused_with_its_place(wrong):
    with pytest.raises(ConfigError) as caught:
        check_annotations(wrong)
    assert caught.value.place == REGISTER_FILE


def test_what_was_said_is_kept_in_the_store_and_told_in_the_trail():
    service = make_service(session="s-1")
    engine = service._engine
    assert read_annotations(engine.kit.store) == {}
    write_annotations(engine.kit.store, engine.trail, SAID)
    assert read_annotations(engine.kit.store) == SAID
    last = [read_fields(line) for line in engine.kit.store.trail("s-1")][-1]
    assert (last["type"], last["data"]) == ("CONFIG_CHANGED", {"file": REGISTER_FILE})


def test_a_wrong_description_changes_nothing():
    engine = make_service(session="s-1")._engine
    with pytest.raises(ConfigError):
        write_annotations(engine.kit.store, engine.trail, {"nonsense": 1})
    assert engine.kit.store.file(REGISTER_FILE) is None


def test_a_file_that_is_no_description_is_told():
    engine = make_service()._engine
    engine.trail.commit((), {REGISTER_FILE: b"not json"})
    with pytest.raises(ConfigError, match="not JSON"):
        read_annotations(engine.kit.store)


def test_the_register_can_be_printed():
    page = Page(render_register(make_register(SAID, OBSERVED)))
    check_page(page)
    assert "to compare offers" in page.text and "trail days min" in page.text.lower()
    assert "Not stated: an activity for 1 workflow." in page.text
    everything = {**SAID, "activities": [{**SAID["activities"][0], "workflows": ["*"]}]}
    assert (
        "Every field of the register is filled in."
        in Page(render_register(make_register(everything, OBSERVED))).text
    )
    check_page(Page(render_register(make_register({}, OBSERVED))))


def test_names_become_no_markup():
    hostile = json.loads(json.dumps(SAID).replace("Offers", "<script>").replace("suppliers", "<b>"))
    check_page(Page(render_register(make_register(hostile, OBSERVED))))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        (True, "yes"),
        (False, "no"),
        ([], "none"),
        (["a", 1], "a, 1"),
        ({"retain_days": 3, "on": True}, "retain days: 3; on: yes"),
    ],
)
def test_values_are_written_for_people(value, text):
    assert value_text(value) == text
