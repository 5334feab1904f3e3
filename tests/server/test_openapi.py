"""The description is valid, and says what the table says."""

from __future__ import annotations

from pathlib import Path

from openapi_spec_validator import validate

from holdfast.server.openapi import describe
from holdfast.server.table import OPERATIONS


def test_the_description_is_valid():
    validate(describe(OPERATIONS))


def test_every_operation_is_described_once():
    told = describe(OPERATIONS)["paths"]
    names = [one["operationId"] for path in told.values() for one in path.values()]
    assert sorted(names) == sorted(one.name for one in OPERATIONS)
    assert len(set(names)) == len(names)


def test_what_acts_needs_a_key_and_a_reason():
    for one in OPERATIONS:
        if one.acts:
            told = describe([one])
            [path] = told["paths"].values()
            [operation] = path.values()
            assert "Idempotency-Key" in {parameter["name"] for parameter in operation["parameters"]}, one.name
            assert one.body is not None and "reason" in one.body.__struct_fields__, one.name


def test_what_does_not_act_never_changes_anything_by_its_method():
    reading = {one.name for one in OPERATIONS if not one.acts and one.method not in ("GET", "HEAD")}
    assert reading == READING


#: What is asked with a body or ends a browser's session, and changes no workflow. The answer of a reveal is a
#: secret: none is kept for whoever asks again.
READING = {
    *("planFork", "planPrune", "planRecovery", "planReveal"),
    *("revealState", "signIn", "signOut", "verifyAudit"),
}


def test_every_operation_has_words_for_people():
    for one in OPERATIONS:
        assert one.summary.endswith(".") and one.tag, one.name


def test_one_place_in_a_path_has_one_name():
    """Two patterns that match the same paths would hide each other's methods."""
    shapes: dict[str, str] = {}
    for one in OPERATIONS:
        shape = "/".join("{}" if step.startswith("{") else step for step in one.path.split("/"))
        assert shapes.setdefault(shape, one.path) == one.path


def test_parts_of_an_answer_are_described():
    told = describe(OPERATIONS)["paths"]["/v1/checkpoints/{checkpoint}/state"]["get"]
    assert {"Range", "If-Range"} <= {one["name"] for one in told["parameters"]}
    assert {"206", "416"} <= set(told["responses"])


def test_the_page_lists_every_operation_with_its_scope():
    page = Path("docs/http.md").read_text("utf-8").partition("## Every operation\n")[2]
    rows = [
        f"| {one.method} | `{one.path}` | {one.scope or 'none'} | {one.summary} |"
        for one in sorted(OPERATIONS, key=lambda one: (one.path, one.method))
    ]
    head = ["| | | scope | |", "|---|---|---|---|"]
    assert page.strip().splitlines() == [*head, *rows]
