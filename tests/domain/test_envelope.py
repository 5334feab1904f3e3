"""The envelope of a checkpoint file: its own version, apart from that of the state."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.domain import envelope
from holdfast.domain.errors import CheckpointCorruptError, MigrationFailedError, UnsupportedVersionError
from holdfast.domain.migration import MigrationRegistry


def whole(version: str = "1.0.0", **more: Any) -> dict[str, Any]:
    return {
        "$schema": f"checkpoint-schema-v{version}",
        "header": {"version": version, "novel": 1},
        "state": {"version": "mine"},
        "footer": {"size_bytes": 3},
        **more,
    }


def steps(*pairs: tuple[str, str]) -> MigrationRegistry:
    registry = MigrationRegistry()
    for source, target in pairs:
        registry.register(source, target, lambda fields: {**fields, "seen": sorted(fields)})
    return registry


def test_the_envelope_of_today_is_answered_as_it_is() -> None:
    given = whole()
    assert envelope.current(given, "W@1") is given


def test_one_of_the_same_major_version_is_read_as_it_is() -> None:
    given = whole("1.7.2", later=True)
    assert envelope.current(given, "W@1") is given


def test_a_newer_major_version_is_refused_with_what_to_do() -> None:
    with pytest.raises(
        UnsupportedVersionError, match=r"v2\.0\.0.*reads 'checkpoint-schema-v1\.0\.0'"
    ) as refusal:
        envelope.current(whole("2.0.0"), "W@1")
    assert (refusal.value.place, refusal.value.hint) == ("W@1", "Upgrade Holdfast.")


def test_an_older_one_goes_through_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envelope, "MIGRATIONS", steps(("0.8.0", "0.9.0"), ("0.9.0", "1.0.0")))
    read = envelope.current(whole("0.8.0"), "W@1")
    assert read["$schema"] == envelope.SCHEMA
    assert read["header"] == {"version": "1.0.0", "novel": 1}


def test_a_step_never_sees_the_state_and_everything_unknown_is_kept() -> None:
    read = envelope.migrated(whole(beside=[1]), "1.1.0", steps(("1.0.0", "1.1.0")))
    assert list(read) == ["$schema", "header", "state", "footer", "beside", "seen"]
    assert read["seen"] == ["$schema", "beside", "footer", "header"]
    assert read["state"] == {"version": "mine"} and read["beside"] == [1]


def test_the_heading_of_an_encoded_file_has_no_state_and_gets_none() -> None:
    heading = whole()
    del heading["state"]
    assert "state" not in envelope.migrated(heading, "1.1.0", steps(("1.0.0", "1.1.0")))


def test_a_step_that_fails_is_told() -> None:
    registry = MigrationRegistry()
    registry.register("1.0.0", "1.1.0", lambda fields: fields["nothing"])
    with pytest.raises(MigrationFailedError, match="KeyError"):
        envelope.migrated(whole(), "1.1.0", registry, "W@1")


@pytest.mark.parametrize("given", [{}, {"$schema": 1}, {"$schema": "event-schema-v1.0.0"}])
def test_a_file_without_a_version_is_no_keyframe(given: dict[str, Any]) -> None:
    with pytest.raises(CheckpointCorruptError, match="no keyframe"):
        envelope.current(given, "W@1")
