from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import quote

import pytest

import holdfast
from holdfast.domain.errors import CheckpointNotFoundError, InvalidIdError
from holdfast.domain.ids import folder_name, shard
from holdfast.server.api.reading import aware, found_checkpoint, known_run, raw_json, writable
from holdfast.server.problems import Refusal
from tests.server.served import application, caller_for, desk_of


def test_names_are_looked_up():
    with desk_of("memory:") as desk:
        desk.service.create_checkpoint("W", {})
        assert known_run(desk, "W").workflow_id == "W"
        assert str(found_checkpoint(desk, "W@latest")) == "W@1"
        with pytest.raises(CheckpointNotFoundError):
            known_run(desk, "X")
        with pytest.raises(InvalidIdError):
            known_run(desk, "\ud800")


def test_what_is_no_text_is_refused():
    assert writable("t\u00e9xt \U0001f33f") == "t\u00e9xt \U0001f33f"
    with pytest.raises(Refusal) as caught:
        writable("\udcff")
    assert caught.value.status == 400 and caught.value.place.isascii()


def test_a_moment_needs_its_time_zone():
    now = datetime.now(UTC)
    assert (aware(now), aware(None)) == (now, None)
    with pytest.raises(Refusal, match="time zone"):
        aware(datetime(2026, 1, 1))


def test_plain_trees_are_json_at_any_depth():
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    assert bytes(raw_json(deep)) == b"[" * 5_001 + b"]" * 5_001
    assert bytes(raw_json({"n": float("nan")})) == b'{"n":{"$hf":"float","v":"nan"}}'


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/checkpoints/{file}", None),
        ("GET", "/v1/checkpoints/{file}/state", None),
        ("GET", "/v1/checkpoints/W@1/diff?base={file}", None),
        ("GET", "/v1/checkpoints/{file}/signature", None),
        ("PATCH", "/v1/checkpoints/{file}", {"reason": "why", "pinned": True}),
        ("POST", "/v1/checkpoints/{file}/validate", {"reason": "why"}),
        ("POST", "/v1/checkpoints/{file}/fork/plan", {"new_workflow_id": "X"}),
        ("POST", "/v1/quarantine", {"reason": "why", "checkpoint": "{file}"}),
        ("POST", "/v1/replay", {"reason": "why", "workflow_id": "W", "start": "{file}"}),
    ],
)
def test_nobody_names_a_file_of_the_servers_machine(tmp_path, method, path, body):
    url = f"file:{tmp_path}/store"
    holdfast.open(url).close()
    with application(url) as (client, desk):
        desk.service.create_checkpoint("W", {})
        file = f"{tmp_path}/store/checkpoints/{shard('W')}/{folder_name('W')}/checkpoint_000001.json"
        sent = body and {name: file if text == "{file}" else text for name, text in body.items()}
        answer = caller_for(client, desk)(method, path.format(file=quote(file, safe="")), json=sent)
        assert (answer.status_code, answer.json()["code"]) == (404, "checkpoint_not_found"), answer.text
        assert "named by a file" in answer.text
