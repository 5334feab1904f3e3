"""A match is judged by what the expression cannot see."""

from __future__ import annotations

import re

import pytest

from holdfast.adapters.redaction import engine
from holdfast.domain.assignments import FORMS
from holdfast.domain.catalogue import ALTERNATIVES, EXPRESSION, KINDS, Finding, Match, accept
from tests.canaries import IN_CONTEXT, TOKENS, Canary

SCANNER = engine()(EXPRESSION)


def findings(text: str) -> list[Finding | None]:
    return [accept(text, match) for match in SCANNER.matches(text)]


@pytest.mark.parametrize("canary", [*TOKENS, *IN_CONTEXT], ids=lambda canary: canary.kind)
def test_a_finding_is_exactly_the_secret_and_its_kind(canary: Canary) -> None:
    text = f"so\n{canary.text}\non"
    found = [finding for finding in findings(text) if finding is not None]
    assert [finding.kind for finding in found] == [canary.kind]
    assert text[found[0].start : found[0].end].strip() == canary.secret.strip()


@pytest.mark.parametrize(
    "kind", ["openai-api-key", "huggingface-token", "aws-access-key-id", "twilio-api-key"]
)
def test_a_token_in_the_middle_of_a_word_is_none(kind: str) -> None:
    secret = next(canary.secret for canary in TOKENS if canary.kind == kind)
    assert findings(f"x{secret}") == [None]
    assert findings(f"x {secret}") != [None]


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PRIVATE KEY----- short -----END PRIVATE KEY-----",
        "postgresql://user:{password}@host",
        "amqp://user:PASSWORD@host",
        "curl -u ann:$PASSWORD https://example.com",
        "123:AA" + "x" * 33,
    ],
)
def test_frames_and_stand_ins_are_no_secrets(text: str) -> None:
    assert findings(text) in ([], [None])


def test_what_stands_before_a_secret_and_belongs_to_it_is_hidden_too() -> None:
    bot = next(canary.secret for canary in TOKENS if canary.kind == "telegram-bot-token")
    (found,) = findings(f"bot{bot}")
    assert found is not None
    assert found.start == 3


def test_the_expression_is_all_alternatives_with_names_that_placeholders_can_show() -> None:
    assert "|".join(ALTERNATIVES) == EXPRESSION
    assert re.compile(EXPRESSION).groups == len(ALTERNATIVES) + len(FORMS) - 1
    assert all(re.fullmatch("[a-z][a-z0-9-]{2,39}", name) for name in KINDS)


def test_a_match_can_be_seen_from_a_longer_text() -> None:
    assert Match(1, 5, 3, 2, 4).shifted(10) == Match(11, 15, 3, 12, 14)
