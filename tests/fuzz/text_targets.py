"""Texts that people and programs write: names of checkpoints, times, settings, patterns, cursors, headers."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import click

from holdfast.adapters.redaction import engine, read_rules
from holdfast.application.insight.cursors import read_cursor, write_cursor
from holdfast.cli.exits import Failure
from holdfast.cli.moments import moment, read_point, read_span
from holdfast.cli.pointer import parse_pointer
from holdfast.config import Config
from holdfast.domain.access import scopes_of
from holdfast.domain.ids import check_file_name, check_id, folder_name, parse_ref
from holdfast.domain.migration import check_version, is_newer
from holdfast.domain.redaction import Redactor, Rules
from holdfast.domain.time import parse_timestamp
from holdfast.domain.user_patterns import combine, is_anchored, kind_name
from holdfast.server.etags import check_match, named
from holdfast.server.problems import Refusal
from tests.fuzz import real_store
from tests.fuzz.target import Target, same, text_of


def _ref(data: bytes) -> None:
    found = parse_ref(text_of(data))
    same(parse_ref(str(found)), found)


def _id(data: bytes) -> None:
    text = check_id("workflow", text_of(data))
    check_file_name(folder_name(text))


def _moment(data: bytes) -> None:
    text = text_of(data)
    context, option = click.Context(click.Command("x")), click.Option(["--since"])
    for read in (read_point, read_span):
        try:
            read(context, option, text)
        except click.BadParameter:
            continue
    moment(text)


def _timestamp(data: bytes) -> None:
    parse_timestamp(text_of(data))


def _written(read: Callable[[Path], object], data: bytes) -> None:
    path = _file()
    path.write_bytes(data)
    read(path)


@cache
def _file() -> Path:
    return Path(real_store.folder(), "file")


def _config(path: Path) -> None:
    Config.load(env={}, path=path)


def _variables(data: bytes) -> None:
    lines = [line.partition("=") for line in text_of(data).splitlines()]
    env = {f"HOLDFAST_{name}": value for name, _, value in lines if name not in ("CONFIG", "PROFILE")}
    Config.load(env=env, path=os.devnull)


def _patterns(data: bytes) -> None:
    """Take a pattern only if it can be searched for; then search with it."""
    # As it comes out of a file of settings, which is UTF-8.
    name, _, pattern = data.decode("utf-8", "replace").partition("\n")
    patterns = {name: pattern}
    kind_name(name)
    combine(patterns)
    is_anchored(patterns)
    Redactor(bytes(32), engine("re2"), Rules(patterns)).text("key 4711 and sk-live-abcdefgh")


def _redacted(data: bytes) -> None:
    """Hide secrets; hiding them again changes nothing."""
    redactor = _redactor()
    once = redactor.text(data.decode("utf-8", "replace"))
    same(redactor.text(once), once)


@cache
def _redactor() -> Redactor:
    return Redactor(bytes(32), engine())


def _cursor(data: bytes) -> None:
    key = read_cursor("runs", text_of(data), (str, int))
    same(read_cursor("runs", write_cursor("runs", key), (str, int)), key)


def _etag(data: bytes) -> None:
    header = text_of(data)
    named('"abc"', header)
    check_match('"abc"', {"if-match": header})


def _version(data: bytes) -> None:
    is_newer(check_version(text_of(data)), "1.0.0")


def _scopes(data: bytes) -> None:
    scopes_of(text_of(data).split(","))


_SETTINGS = b"""store = "file:x"
retain_days = 7
[checkpoint]
compression = "gzip"
checkpoint_size_limit_mb = 5
[profile.test]
encoding = "cbor"
"""
_RULES = b"""keys = ["badge"]
allowed_values = ["x"]
[patterns]
number = "E-[0-9]{4}"
"""
_SECRETS = (
    b"Authorization: Bearer abcdefghijklmnop1234567890",
    b"AKIAIOSFODNN7EXAMPLE password=hunter2hunter2",
    b'{"api_key": "sk-proj-' + b"a" * 40 + b'"}',
)
_REFS = (
    b"WF@42",
    b"WF@latest~2",
    b"WF@phase:2",
    b"WF@stage:a b",
    b"WF@event:7",
    b"WF@time:2026-01-11T14:30:00Z",
)

TARGETS = (
    Target("checkpoint_name", _ref, lambda: [*_REFS, b"0123abcd", b"checkpoints/x/checkpoint_000001.json"]),
    Target("identifier", _id, lambda: [b"WF-2026-001", "Grüße/..\\CON".encode()]),
    Target("moment", _moment, lambda: [b"7d", b"2026-01-31T12:00+01:00", b"WF@{10m ago}"], (ValueError,)),
    Target("timestamp", _timestamp, lambda: [b"2026-01-11T14:30:00.123456Z"]),
    Target("cli_pointer", lambda data: parse_pointer(text_of(data)), lambda: [b"/a/b~1c"], (Failure,)),
    Target("config_file", partial(_written, _config), lambda: [_SETTINGS]),
    Target("config_variables", _variables, lambda: [b"RETAIN_DAYS=7\nREDACT=off\nSTORE=memory:"]),
    Target("redaction_rules", partial(_written, lambda path: read_rules(str(path))), lambda: [_RULES]),
    Target("redaction_pattern", _patterns, lambda: [b"number\nE-[0-9]{4}", b"a\n(?i)(x|y)+z"]),
    Target("redacted_text", _redacted, lambda: _SECRETS),
    Target("cursor", _cursor, lambda: [write_cursor("runs", ("a", 1)).encode()]),
    Target("etag", _etag, lambda: [b'"abc"', b'W/"abc", "x"', b"*"], (Refusal,)),
    Target("schema_version", _version, lambda: [b"1.0.0", b"2.10.3"]),
    Target("scopes", _scopes, lambda: [b"read,append", b"operator"]),
)
