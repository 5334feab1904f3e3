from dataclasses import dataclass

import pytest

from holdfast.domain.errors import CheckpointCorruptError, ConfigError, UnsupportedTypeError
from holdfast.domain.personal import Erased, Personal
from holdfast.domain.plain import TypeRegistry, to_plain


class Open:
    """Seals nothing, so that one can look."""

    def __init__(self):
        self.gone = set()

    def seal_personal(self, subject, packed):
        return f"key of {subject}", packed.hex()

    def open_personal(self, key_id, text):
        return None if key_id in self.gone else (key_id.removeprefix("key of "), bytes.fromhex(text))


VALUE = {"a": [Personal("ann", {"born": {1, 2}, "n": 1}), Personal("bob", None)]}


def test_values_of_persons_come_back_as_they_were():
    types = TypeRegistry().of_people(Open())
    plain = to_plain(VALUE, types)
    assert plain["a"][0]["$hf"] == "personal" and plain["a"][0]["key"] == "key of ann"
    assert types.revive(plain) == VALUE


def test_what_was_erased_comes_back_marked_and_is_stored_as_it_was():
    people = Open()
    types = TypeRegistry().of_people(people)
    plain = to_plain(VALUE, types)
    people.gone.add("key of ann")
    left = types.revive(plain)
    assert isinstance(left["a"][0], Erased) and left["a"][1] == Personal("bob", None)
    assert to_plain(left, types) == plain


def test_one_persons_value_may_hold_anothers():
    people = Open()
    types = TypeRegistry().of_people(people)
    nested = Personal("ann", {"friend": Personal("bob", 1)})
    plain = to_plain(nested, types)
    assert types.revive(plain) == nested
    people.gone.add("key of bob")
    assert isinstance(types.revive(plain).value["friend"], Erased)


def test_a_value_is_never_shown():
    assert repr(Personal("ann", "secret")) == "Personal(subject='ann')"
    assert "sealed" not in repr(Erased("k", "sealed"))


def test_types_added_later_are_known_beside_the_persons():
    types = TypeRegistry()
    bound = types.of_people(Open())

    @types.register
    @dataclass
    class Later:
        n: int

    assert bound.revive(to_plain([Later(1), Personal("ann", Later(2))], bound)) == [
        Later(1),
        Personal("ann", Later(2)),
    ]


@pytest.mark.parametrize("value", [Personal("", 1), Personal(7, 1)])
def test_a_subject_is_a_text(value):
    with pytest.raises(UnsupportedTypeError, match="is a text"):
        to_plain(value, TypeRegistry().of_people(Open()))


def test_data_that_looks_like_a_persons_value_stays_data():
    types = TypeRegistry().of_people(Open())
    lookalike = {"$hf": "personal", "key": "key of ann", "v": "00"}
    assert types.revive(to_plain(lookalike, types)) == lookalike


@pytest.mark.parametrize("tagged", [{"key": 1, "v": ""}, {"key": "k", "v": 1}, {"key": "k"}])
def test_a_stored_value_that_is_none_is_refused(tagged):
    with pytest.raises(CheckpointCorruptError):
        TypeRegistry().of_people(Open()).revive({"$hf": "personal", **tagged})


@pytest.mark.parametrize("kind", [Personal, Erased])
def test_the_types_themselves_cannot_be_registered(kind):
    with pytest.raises(ConfigError, match="by Holdfast itself"):
        TypeRegistry().register(kind)
