"""Trying only where something can begin finds what trying everywhere finds."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.domain.candidates import CandidateScanner, heads, places, trie
from holdfast.domain.catalogue import EXPRESSION, Match
from holdfast.domain.credential_patterns import IN_CONTEXT, TOKENS, CredentialKind
from tests.canaries import CANARIES
from tests.domain.harmless import HARMLESS

EVERYWHERE = re.compile(EXPRESSION, re.ASCII)
SCANNER = CandidateScanner()


def everywhere(text: str) -> Iterator[Match]:
    for found in EVERYWHERE.finditer(text):
        assert found.lastindex is not None
        yield Match(*found.span(), found.lastindex, *found.span(found.lastindex))


pieces = (
    st.sampled_from([canary.text for canary in CANARIES])
    | st.builds(lambda canary, cut: canary.text[cut:], st.sampled_from(CANARIES), st.integers(1, 30))
    | st.builds(lambda canary, cut: canary.text[:cut], st.sampled_from(CANARIES), st.integers(1, 40))
    | st.sampled_from(
        [*"=:>-_./@ \n\"'", "--", "%3D", "api", "key", "access_", "\u00fc", "\u9375", "AKIA", "sk-"]
    )
    | st.text(max_size=6)
    | st.text("abcdefABCDEF0123456789_-", min_size=10, max_size=40)
)


@pytest.mark.sweep
@settings(max_examples=200, deadline=None)
@given(st.lists(pieces, max_size=7).map("".join))
def test_the_same_is_found_as_everywhere(text: str) -> None:
    assert list(SCANNER.matches(text)) == list(everywhere(text))


@pytest.mark.parametrize("text", [*HARMLESS, *(canary.text for canary in CANARIES)])
def test_the_same_is_found_in_canaries_and_ordinary_texts(text: str) -> None:
    assert list(SCANNER.matches(text)) == list(everywhere(text))


def test_the_same_is_found_in_long_runs_of_base64() -> None:
    filler = "QUJD/+" * 200
    text = "".join(f"{filler} {canary.text} {filler}{canary.text}" for canary in CANARIES[::7])
    assert list(SCANNER.matches(text)) == list(everywhere(text))


@pytest.mark.parametrize("kind", [*TOKENS, *IN_CONTEXT], ids=lambda kind: kind.name)
def test_every_kind_begins_with_at_least_two_fixed_letters(kind: CredentialKind) -> None:
    assert min(map(len, heads(kind.expression))) >= 2


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("(AKIA[0-9A-Z]{16,})", {"AKIA"}),
        ("(gh[ps]_x)", {"ghp_x", "ghs_x"}),
        ("(?:aa|bb)c+", {"aac", "bbc"}),
        ("x\\.com/(?:v[0-9]+/)?y", {"x.com/"}),
        ("[Aa][Bb]c?", {"ab"}),
        ("tskey-[a-z]+-", {"tskey-"}),
        ("ab{2}", {"a"}),
    ],
)
def test_the_fixed_letters_of_an_expression_are_read(expression: str, wanted: set[str]) -> None:
    assert heads(expression) == wanted


@given(st.sets(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=8))
def test_a_trie_matches_where_one_of_its_words_stands(words: set[str]) -> None:
    pattern = re.compile(trie(sorted(words)))
    for word in words:
        found = pattern.match(word)
        assert found is not None
        assert found[0] in words


def test_prose_offers_no_places() -> None:
    assert places("Nothing here begins like a credential, whatever the words; and that is most texts.") == {}
