"""One key is changed, and it is proved that nothing else is."""

from __future__ import annotations

import tomllib
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.config_editing import Edit, edited, read_toml, toml_text
from holdfast.domain.errors import ConfigError

FILE = """\
# The settings of this project.
store = "s"      # where it is
mode = "default"

# About checkpoints.
[checkpoint]  # first
enabled = true
retention_days=7 # a week

[recovery]
app = "flows # main:app"
"""


def change(text: str, value: str | None, *keys: str) -> str:
    return edited(text, Edit(keys, value), "holdfast.toml")


def test_a_value_is_changed_in_its_place_and_its_comment_stays():
    assert change(FILE, '"t"', "store") == FILE.replace('"s"      #', '"t"      #')
    assert change(FILE, "9", "checkpoint", "retention_days") == FILE.replace("=7 #", "= 9 #")
    assert change(FILE, '"x"', "recovery", "app") == FILE.replace('"flows # main:app"', '"x"')


def test_what_is_so_already_is_left_alone():
    assert change(FILE, '"s"', "store") == FILE
    assert change(FILE, None, "retain_days") == FILE
    assert change(FILE, None, "run", "program") == FILE


def test_a_new_key_stands_below_those_of_its_part():
    assert change(FILE, "3", "retain_days") == FILE.replace(
        'mode = "default"\n', 'mode = "default"\nretain_days = 3\n'
    )
    assert change(FILE, "true", "checkpoint", "encryption") == FILE.replace(
        "a week\n", "a week\nencryption = true\n"
    )
    assert change(FILE, "3", "recovery", "max_recovery_attempts").endswith(
        'main:app"\nmax_recovery_attempts = 3\n'
    )


def test_a_new_table_stands_at_the_end():
    assert change(FILE, '"a:b"', "run", "program") == FILE + '\n[run]\nprogram = "a:b"\n'
    assert change("", '"a:b"', "run", "program") == '[run]\nprogram = "a:b"\n'
    assert change("", "3", "retain_days") == "retain_days = 3\n"
    assert change("mode = 'default'", "3", "retain_days") == "mode = 'default'\nretain_days = 3\n"


def test_comments_above_a_table_stay_with_it():
    assert change("# about it\n[run]\n", "3", "retain_days") == "retain_days = 3\n\n# about it\n[run]\n"
    assert change("# head\n\n[run]\n", "3", "retain_days") == "# head\nretain_days = 3\n\n[run]\n"


def test_a_key_is_taken_out():
    assert change(FILE, None, "mode") == FILE.replace('mode = "default"\n', "")
    assert change(FILE, None, "checkpoint", "enabled") == FILE.replace("enabled = true\n", "")


def test_line_ends_stay_as_they_are():
    dos = FILE.replace("\n", "\r\n")
    assert change(dos, '"t"', "store") == dos.replace('"s"', '"t"')
    assert change(dos, "3", "retain_days").count("\r\n") == dos.count("\n") + 1


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("checkpoint.enabled = true\n", ("checkpoint", "enabled")),
        ('"store" = "s"\n', ("store",)),
        ('store = """\ns"""\n', ("store",)),
        ("checkpoint = { enabled = true }\n", ("checkpoint", "enabled")),
        ('app = """\nstore = "x"\n"""\n[run]\n', ("store",)),
    ],
)
def test_what_cannot_be_changed_safely_is_refused(text, keys):
    with pytest.raises(ConfigError, match="without touching something else"):
        change(text, '"new"', *keys)


def test_a_quoted_key_cannot_be_taken_out_either():
    with pytest.raises(ConfigError, match="without touching"):
        change('"store" = "s"\n', None, "store")


def test_what_is_no_table_or_no_toml_is_told():
    with pytest.raises(ConfigError, match="is no table"):
        change("run = 3\n", '"a:b"', "run", "program")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_toml("store = \n", "holdfast.toml")


@given(st.text() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False))
def test_every_value_is_written_so_that_it_is_read_again(value):
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return
    assert tomllib.loads(f"value = {toml_text(value)}")["value"] == value


LINES = st.sampled_from(
    [
        "",
        "# a comment",
        'store = "s"',
        "retain_days = 3 # [x]",
        "retain = false",
        '"mode" = "default"',
        "[checkpoint]",
        "[ recovery ] # =",
        "enabled = true",
        "retention_days = 3",
        'app = """',
        '"""',
        "x = [",
        "[1],",
        "]",
    ]
)


@given(
    st.lists(LINES, max_size=12).map("\n".join),
    st.sampled_from([("store",), ("retain_days",), ("checkpoint", "enabled"), ("recovery", "app")]),
    st.sampled_from(['"v"', "4", "true", None]),
)
def test_whatever_a_file_looks_like_only_the_key_changes_or_it_is_refused(text, keys, value):
    try:
        before = tomllib.loads(text)
        after = tomllib.loads(change(text, value, *keys))
    except (ValueError, ConfigError):
        return
    wanted = deepcopy(before)
    place = wanted.setdefault(keys[0], {}) if len(keys) > 1 else wanted
    if value is None:
        place.pop(keys[-1], None)
        after.setdefault(keys[0], {}) if len(keys) > 1 else None
    else:
        place[keys[-1]] = tomllib.loads(f"v = {value}")["v"]
    assert after == wanted
