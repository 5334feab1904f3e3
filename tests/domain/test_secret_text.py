"""Texts lose their secrets and nothing else."""

from __future__ import annotations

import pytest

from holdfast.adapters.redaction import engine
from holdfast.domain.errors import ConfigError
from holdfast.domain.placeholders import Placeholders, is_placeholder, spans
from holdfast.domain.secret_text import SecretText
from tests.canaries import TOKENS

KEY = Placeholders(b"k" * 16)
TEXT = SecretText(KEY, engine(), {})


def of(kind: str) -> str:
    return next(canary.secret for canary in TOKENS if canary.kind == kind)


def test_a_text_without_secrets_is_the_very_same() -> None:
    text = "nothing to see"
    assert TEXT.hide(text) is text


def test_secrets_that_are_glued_together_are_all_hidden() -> None:
    text = of("aws-access-key-id") + of("openai-api-key")
    hidden = TEXT.hide(text)
    assert hidden.count("[REDACTED:") == 2
    assert len(spans(hidden)) == 2


def test_a_secret_in_what_stands_before_another_is_hidden_too() -> None:
    hidden = TEXT.hide(f"https://{of('github-token')}:x-oauth-basic1@github.com/a/b")
    assert of("github-token") not in hidden
    assert hidden.endswith("@github.com/a/b")


def test_a_secret_inside_a_false_alarm_is_hidden() -> None:
    hidden = TEXT.hide(f'token = "$PREFIX {of("github-token")}"')
    assert of("github-token") not in hidden
    assert hidden.startswith('token = "$PREFIX [REDACTED:github-token:')


def test_a_placeholder_is_never_hidden_and_what_is_glued_to_it_is() -> None:
    hidden = TEXT.hide("password=hunter2")
    assert TEXT.hide(hidden) == hidden
    more = TEXT.hide(hidden + "more1")
    assert more.startswith(hidden)
    assert "more1" not in more
    assert TEXT.hide(more) == more


def test_a_text_that_uncovers_secrets_without_end_is_hidden_as_a_whole() -> None:
    # Each letter is hidden only once the one before it is.
    text = SecretText(KEY, engine("re"), {"next": r"\bx"})
    assert is_placeholder(text.hide("x" * 50))
    assert text.hide(text.hide("x" * 50)) == text.hide("x" * 50)


def test_a_pattern_of_the_user_cannot_touch_placeholders() -> None:
    text = SecretText(KEY, engine(), {"digits": "[0-9a-f]{4}", "word": "REDACTED"})
    hidden = text.hide("password=hunter2 and cafe")
    assert text.hide(hidden) == hidden
    assert len(spans(hidden)) == 2


def test_overlapping_findings_are_hidden_once() -> None:
    text = SecretText(KEY, engine(), {"part": "hunter", "wide": r"d=hunter2 \w+"})
    assert text.hide("password=hunter2 xyz").count("hunter") == 0
    assert len(spans(text.hide("password=hunter2 xyz"))) >= 1


def test_it_is_said_which_pattern_is_wrong() -> None:
    with pytest.raises(ConfigError, match="'second'"):
        SecretText(KEY, engine("re2"), {"first": "a", "second": r"\u0041"})
    with pytest.raises(ConfigError, match="'second'"):
        SecretText(KEY, engine("re"), {"first": "a", "second": "("})


def test_a_name_hides_the_whole_text_under_its_own_kind_if_it_has_one() -> None:
    assert TEXT.hide_whole("anything at all", "token").startswith("[REDACTED:token:")
    assert TEXT.hide_whole(of("github-token"), "token").startswith("[REDACTED:github-token:")
    assert TEXT.hide_whole("", "token") == ""
    once = TEXT.hide_whole("x", "token")
    assert TEXT.hide_whole(once, "password") == once


def test_long_base64_and_base64_of_other_things_are_left_alone() -> None:
    import base64

    for data in (b"\x89PNG\r\n" * 20, b"an ordinary text in base64, nothing else", "\u00fc".encode() * 12):
        encoded = base64.b64encode(data).decode()
        assert TEXT.hide(encoded) == encoded
    unpadded = base64.b64encode(of("github-token").encode()).decode().rstrip("=")
    assert is_placeholder(TEXT.hide(unpadded))
    assert is_placeholder(TEXT.hide(unpadded + "\n"))


@pytest.mark.sweep
def test_a_text_that_matches_nothing_has_no_beginning_that_does() -> None:
    for canary in TOKENS:
        matched = [not TEXT.is_clean(canary.text[:cut]) for cut in range(0, len(canary.text), 5)]
        assert matched == sorted(matched), canary
