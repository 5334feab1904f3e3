from __future__ import annotations

from pathlib import Path

import click
import pytest

from holdfast.cli.audit_trust import LEVELS, Known, level_of, read_keys, read_pin
from holdfast.domain.log_check import Level
from holdfast.domain.treehead import TreeHead
from tests.trails import LOG_KEY, ORIGIN, WITNESS_KEY, make_log

HEAD = TreeHead(ORIGIN, 7, bytes(range(32)))


def test_keys_are_read_as_they_are_and_from_files(tmp_path: Path):
    file = tmp_path / "vkeys"
    file.write_text(f"# of the log\n{LOG_KEY.key}\n\n{WITNESS_KEY.key}\n")
    assert read_keys([str(LOG_KEY.key)]) == (LOG_KEY.key,)
    assert read_keys([str(file), str(LOG_KEY.key)]) == (LOG_KEY.key, WITNESS_KEY.key)


@pytest.mark.parametrize("text", ["a+b+c", "nothing", f"{LOG_KEY.key}x"])
def test_what_is_no_key_is_wrong_usage(text: str):
    with pytest.raises(click.UsageError):
        read_keys([text])


def test_a_file_without_a_key_is_wrong_usage(tmp_path: Path):
    (tmp_path / "empty").write_text("# nothing\n")
    with pytest.raises(click.UsageError, match="no public key"):
        read_keys([str(tmp_path / "empty")])


def test_a_pin_is_a_file_or_size_and_root(tmp_path: Path):
    (tmp_path / "bare").write_text(HEAD.text())
    (tmp_path / "signed").write_bytes(make_log(4, (4,)).heads[0])
    assert read_pin(str(tmp_path / "bare"), "other") == HEAD
    assert read_pin(str(tmp_path / "signed"), "other").size == 4
    for root in (HEAD.root.hex(), HEAD.text().splitlines()[2]):
        assert read_pin(f"7:{root}", ORIGIN) == HEAD


@pytest.mark.parametrize("text", ["7:", "7:00", "7:zz", "seven:00", "nothing", "07:" + "00" * 32])
def test_what_is_no_pin_is_wrong_usage(text: str):
    with pytest.raises(click.UsageError):
        read_pin(text, ORIGIN)


def test_a_pin_without_a_name_is_of_the_log_that_the_keys_name():
    pin = f"7:{HEAD.root.hex()}"
    assert Known((LOG_KEY.key,), (pin,)).read_pins("other") == (HEAD,)
    assert Known((), (pin,)).read_pins("other")[0].origin == "other"


def test_who_gives_something_wants_the_level_it_is_for():
    assert Known().level is Level.CHAIN
    assert Known((LOG_KEY.key,)).level is Level.SIGNED
    assert Known((LOG_KEY.key,), ("pin",)).level is Level.PINNED
    assert Known((LOG_KEY.key,), ("pin",), (WITNESS_KEY.key,)).level is Level.WITNESSED


def test_each_word_is_a_level():
    assert [level_of(word) for word in LEVELS] == [*Level][1:]
