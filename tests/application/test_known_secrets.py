"""Known secrets are given back where they were, and nowhere else."""

from __future__ import annotations

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.known_secrets import candidates, resolver_of
from holdfast.application.service import CheckpointService
from holdfast.bootstrap import build_kit
from holdfast.config import Config
from tests.encrypted import OLD_KEY

PEM = "first line\nsecond line"
LISTED = b"""# what we use now
correct horse
DB='tr0ub4dor'
PEM="first line\\nsecond line"
BROKEN="no end
"""


@pytest.fixture(params=[False, True], ids=["plain", "encrypted"])
def kit(request, monkeypatch):
    monkeypatch.setenv("TEST_KEY", OLD_KEY.hex())
    more = {"encrypt": True, "encryption_key": "env:TEST_KEY"} if request.param else {}
    return build_kit(MemoryStore(), Config.load({"store": "memory:", **more}))


def stored(kit, **context):
    service = CheckpointService(kit)
    service.create_checkpoint("w", context)
    state = service.load_latest("w")
    assert state is not None
    return state.context


@pytest.mark.filterwarnings("ignore::holdfast.domain.errors.RedactedStateWarning")
def test_a_secret_is_given_back_where_its_digits_are_and_nowhere_else(kit):
    held = stored(kit, password="correct horse", api_key="tr0ub4dor", token=PEM, pin="not listed")
    resolve = resolver_of(kit, LISTED)
    answers = {name: resolve(f"/context/{name}", placeholder) for name, placeholder in held.items()}
    assert answers == {"password": "correct horse", "api_key": "tr0ub4dor", "token": PEM, "pin": None}


def test_a_store_in_which_nothing_was_hidden_knows_no_secret():
    kit = build_kit(MemoryStore(), Config.load({"store": "memory:"}))
    assert resolver_of(kit, LISTED)("/a", "[REDACTED:password:0a1b2c3d]") is None


def test_lines_names_and_quotes_are_read():
    found = list(candidates(LISTED.decode()))
    assert {"correct horse", "tr0ub4dor", PEM} <= set(found)
    assert list(candidates("\n  \nA=\n")) == ["A="]
