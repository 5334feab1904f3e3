import pickle
import re

import pytest

from holdfast.domain import errors
from holdfast.domain.errors import CheckpointError, all_codes


def test_an_error_says_what_where_and_what_to_do():
    error = errors.DiskFullError("no space left", place="journal/0001", hint="Free some space.")
    assert str(error) == "no space left: journal/0001. Free some space."
    assert (error.message, error.place, error.hint) == ("no space left", "journal/0001", "Free some space.")


@pytest.mark.parametrize(
    ("place", "hint", "text"),
    [("", "", "broken"), ("here", "", "broken: here"), ("", "Mend it.", "broken. Mend it.")],
)
def test_an_error_leaves_out_what_it_does_not_know(place, hint, text):
    assert str(CheckpointError("broken", place=place, hint=hint)) == text


def test_every_error_class_of_the_module_has_a_code_of_its_own():
    classes = [
        thing
        for thing in vars(errors).values()
        if isinstance(thing, type) and issubclass(thing, CheckpointError)
    ]
    assert set(all_codes().values()) == set(classes)
    assert len(all_codes()) == len(classes)


@pytest.mark.parametrize("code", sorted(all_codes()))
def test_a_code_is_snake_case_and_an_error_survives_pickling(code):
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", code)
    error = all_codes()[code]("what", place="where", hint="Do this.")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy)) == (type(error), str(error))


def test_the_tree_drawn_in_the_docstring_is_the_tree():
    drawn = re.findall(r"^([|` -]*)(\w+Error)\b", errors.__doc__ or "", re.MULTILINE)
    parents: list[str] = []
    for indent, name in drawn:
        depth = len(indent) // 4
        kind = getattr(errors, name)
        assert depth == 0 or kind.__bases__[0].__name__ == parents[depth - 1]
        parents[depth:] = [name]
    assert {name for _, name in drawn} == {kind.__name__ for kind in all_codes().values()}


def test_an_applications_own_error_does_not_take_over_a_code():
    class OurDiskFull(errors.DiskFullError):
        pass

    assert all_codes()[OurDiskFull.code] is errors.DiskFullError


@pytest.mark.parametrize("kind", [errors.InvalidIdError, errors.ConfigError])
def test_wrong_arguments_are_value_errors_too(kind):
    assert issubclass(kind, ValueError)


@pytest.mark.parametrize(
    "kind",
    [
        errors.StoreDamageWarning,
        errors.EventsSkippedWarning,
        errors.StateSizeWarning,
        errors.PromiseBrokenWarning,
    ],
)
def test_warnings_are_shown_to_users(kind):
    assert issubclass(kind, UserWarning)
