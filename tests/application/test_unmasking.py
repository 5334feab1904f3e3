"""What is masked is shown to whoever says why, and told before; what cannot be told is not shown."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.adapters.memory import MemoryStore
from holdfast.application.insight.masks import masks_of
from holdfast.application.reading import Reader
from holdfast.application.service import CheckpointService
from holdfast.application.travel.travelling import TimeTravel
from holdfast.application.unmasking import obstacles, unmask
from holdfast.bootstrap import build_kit
from holdfast.config import Config
from holdfast.domain.errors import CheckpointNotFoundError, ConfigError, KeyUnavailableError
from tests.encrypted import OLD_KEY

STATE = {"password": "correct horse", "log": "DB_PASSWORD=tr0ub4dor make", "n": [1, {"token": "t-1"}]}


def opened(**more):
    kit = build_kit(MemoryStore(), Config.load({"store": "memory:", **more}))
    return kit, CheckpointService(kit)


def point_of(kit, name="w@1"):
    return TimeTravel(kit, None, Reader(kit)).at(name)


def entries(service):
    return [one for one in service.audit.query_events() if one.type == "SECRET_REVEALED"]


def test_a_place_is_filled_and_only_what_lies_in_it_is_asked_for():
    kit, service = opened()
    service.create_checkpoint("w", STATE)
    asked = []

    def resolver(pointer, placeholder):
        asked.append(pointer)
        return {"/context/password": "correct horse", "/context/log": "tr0ub4dor"}.get(pointer)

    point = point_of(kit)
    whole = unmask(kit, service.audit, point, "/context", resolver)
    assert whole.value["password"] == "correct horse" and whole.value["log"] == "DB_PASSWORD=tr0ub4dor make"
    assert (whole.filled, whole.opened, whole.left) == (2, 0, ("/context/n/1/token",))
    asked.clear()
    one = unmask(kit, service.audit, point, "/context/password", resolver)
    assert (one.value, one.filled, asked) == ("correct horse", 1, ["/context/password"])
    assert point.tree["context"]["password"].startswith("[REDACTED:")
    [first, second] = entries(service)
    assert (first.workflow_id, first.facts["cp_seq"], first.facts["filled"], first.facts["left"]) == (
        "w",
        1,
        2,
        1,
    )
    assert (first.data, second.data) == ({"pointer": "/context"}, {"pointer": "/context/password"})


def test_a_value_of_a_person_is_opened_with_its_key_and_stays_shut_once_that_is_gone(monkeypatch):
    monkeypatch.setenv("TEST_KEY", OLD_KEY.hex())
    kit, service = opened(encrypt=True, encryption_key="env:TEST_KEY")
    mail = holdfast.Personal("alice", {"mail": "alice@example.org", "password": "correct horse"})
    service.create_checkpoint("w", {"who": mail})
    point = point_of(kit)
    shown = unmask(kit, service.audit, point, "/context/who", lambda pointer, found: "correct horse")
    assert shown.value == {"mail": "alice@example.org", "password": "correct horse"}
    assert (shown.filled, shown.opened, shown.left) == (1, 1, ())
    service.erasure.subject("alice", reason="asked for")
    gone = unmask(kit, service.audit, point, "/context/who")
    assert (gone.opened, gone.left) == (0, ("/context/who",))


def test_what_cannot_be_told_is_not_shown():
    kit, service = opened(audit=False)
    service.create_checkpoint("w", STATE)
    with pytest.raises(ConfigError, match="switched off"):
        unmask(kit, service.audit, point_of(kit), "/context", lambda pointer, placeholder: "x")


def test_a_resolver_that_fails_is_told_without_its_words():
    kit, service = opened()
    service.create_checkpoint("w", STATE)

    def resolver(pointer, placeholder):
        raise ValueError("correct horse")

    with pytest.raises(KeyUnavailableError) as failed:
        unmask(kit, service.audit, point_of(kit), "/context", resolver)
    assert "ValueError" in str(failed.value) and "horse" not in str(failed.value)
    assert failed.value.__cause__ is None and entries(service) == []


def test_a_place_that_is_not_there_is_told():
    kit, service = opened()
    service.create_checkpoint("w", STATE)
    with pytest.raises(CheckpointNotFoundError):
        unmask(kit, service.audit, point_of(kit), "/nowhere")


SEALED = {"$hf": "personal", "key": "k", "v": ""}
HIDDEN = "[REDACTED:password:0a1b2c3d]"


@pytest.mark.parametrize(
    ("tree", "has_resolver", "refused", "warned"),
    [
        ({"a": 1}, True, 1, 0),
        ({"a": HIDDEN}, True, 0, 0),
        ({"a": HIDDEN}, False, 1, 0),
        ({"a": SEALED}, True, 1, 0),
        ({"a": HIDDEN, "b": SEALED}, True, 0, 1),
        ({"a": HIDDEN, "b": SEALED}, False, 2, 0),
    ],
)
def test_what_is_in_the_way_is_told_before(tree, has_resolver, refused, warned):
    kit, _ = opened()
    refusals, missing = obstacles(kit, masks_of(tree), has_resolver=has_resolver)
    assert (len(refusals), len(missing)) == (refused, warned)
