"""Every error of the library has a status, and is told in the same words as on the command line."""

from __future__ import annotations

import json

from holdfast.domain import errors
from holdfast.server.problems import STATUS_OF_ERROR, Detail, Refusal, refusal_of, response_of


def all_errors(kind=errors.CheckpointError):
    yield kind
    for below in kind.__subclasses__():
        yield from all_errors(below)


def test_every_error_has_a_status_and_no_status_is_left_over():
    ours = {kind.code for kind in all_errors() if kind.__module__ == errors.__name__}
    assert ours == set(STATUS_OF_ERROR)


def test_an_error_keeps_its_words():
    error = errors.CheckpointNotFoundError("there is none", place="WF@1", hint="Look.")
    refusal = refusal_of(error)
    assert (refusal.status, refusal.code, refusal.detail) == (404, "checkpoint_not_found", "there is none")
    assert (refusal.place, refusal.hint) == ("WF@1", "Look.")


def test_what_may_be_tried_again_says_when():
    assert refusal_of(errors.StoreLockedError("busy")).headers["Retry-After"]


def test_what_no_text_can_hold_is_spelled_out():
    refusal = Refusal(404, "x", "no \udcff", place="\udcff", errors=[Detail("\udcff")], candidates=["\udcff"])
    told = json.loads(response_of(refusal, "r").body)
    spelled = "\\udcff"
    assert (told["detail"], told["place"], told["candidates"]) == (f"no {spelled}", spelled, [spelled])
    assert told["errors"][0]["message"] == spelled
