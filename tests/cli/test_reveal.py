"""`holdfast reveal`: what is masked is shown to whoever says why, and that is told."""

from __future__ import annotations

import pytest

import holdfast
from holdfast import bootstrap
from holdfast.cli.exits import Exit
from tests.cli.conftest import entries
from tests.cli.encrypted import KEY, use_key


@pytest.fixture
def place(run, tmp_path):
    with bootstrap.open(str(tmp_path / "store")) as service:
        service.create_checkpoint("w", {"password": "correct horse", "n": 1})
    secrets = tmp_path / "secrets"
    secrets.write_text("APP='correct horse'\n")
    secrets.chmod(0o600)
    return tmp_path / "store"


def test_a_secret_is_shown_to_whoever_says_why_and_both_are_told(run, place):
    asked = ("reveal", "w", "/context/password", "--resolver", "file:secrets", "--reason", "ticket 7")
    shown = run(*asked, "--store", place)
    assert (shown.exit_code, shown.out) == (Exit.DONE, '"correct horse"\n')
    for_programs = run(*asked, "--json", "--store", place).data
    assert for_programs == {
        "id": "w@1",
        "pointer": "/context/password",
        "state": "correct horse",
        "filled": 1,
        "opened": 0,
        "left": [],
    }
    wishes = entries(run, place, "REQUEST_MADE")
    reveals = entries(run, place, "SECRET_REVEALED")
    assert [one["data"]["command"] for one in wishes] == ["reveal", "reveal"]
    assert [one["data"]["filled"] for one in reveals] == [1, 1]
    assert reveals[0]["correlation"] == wishes[0]["correlation"]
    entry = f"{wishes[0]['session']}#{wishes[0]['seq']}"
    why = run("audit", "show", entry, "--json", "--store", place).data
    assert why["payload"] == {"reason": "ticket 7"}


def test_what_the_resolver_does_not_know_stays_masked_and_is_named(run, place, monkeypatch):
    monkeypatch.setenv("OTHER", "another")
    shown = run("reveal", "w", "--resolver", "env:OTHER", "--reason", "why not", "--store", place)
    assert "[REDACTED:password:" in shown.out and "Still masked: /context/password" in shown.err


def test_a_dry_run_names_the_places_and_tells_nobody(run, place):
    asked = ("reveal", "w", "--resolver", "env:OTHER", "--reason", "why not", "--dry-run", "--store", place)
    assert run(*asked).out == "1 masked place: /context/password\n"
    assert run(*asked, "--json").data == {"dry_run": True, "places": ["/context/password"]}
    assert entries(run, place, "REQUEST_MADE") == []


@pytest.mark.parametrize(
    ("words", "leave", "code"),
    [
        (("w", "--reason", "x"), Exit.REFUSED, "cannot_reveal"),
        (("w", "/context/n", "--reason", "x"), Exit.REFUSED, "cannot_reveal"),
        (("w", "/nowhere", "--reason", "x"), Exit.NOT_FOUND, "checkpoint_not_found"),
        (("w",), Exit.USAGE, "wrong_usage"),
        (("w", "--reason", " "), Exit.USAGE, "wrong_usage"),
    ],
)
def test_what_cannot_be_shown_is_refused_and_not_told_as_shown(run, place, words, leave, code):
    refused = run("reveal", *words, "--json", "--store", place)
    assert (refused.exit_code, refused.error["code"]) == (leave, code)
    assert entries(run, place, "SECRET_REVEALED") == []


def test_a_value_of_a_person_is_opened_with_the_key(run, tmp_path, monkeypatch):
    use_key(monkeypatch)
    url = str(tmp_path / "encrypted")
    with bootstrap.open(url, encrypt=True, encryption_key=KEY) as service:
        service.create_checkpoint("w", {"who": holdfast.Personal("alice", "alice@example.org")})
    masked = run("show", "w", "--state=/context/who", "--store", url).out
    assert "alice@" not in masked
    shown = run("reveal", "w", "/context/who", "--reason", "she asked", "--store", url)
    assert shown.out == '"alice@example.org"\n'
