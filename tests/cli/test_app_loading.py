"""An app is loaded by the name that a person gave, and what is wrong with it is said."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.app_loading import load_app
from holdfast.domain.errors import ConfigError

MODULE = """
from holdfast.application.app import App

app = App(schema_version="2.0.0")
number = 7

class Holder:
    app = App(schema_version="3.0.0")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    path, modules = list(sys.path), set(sys.modules)
    (tmp_path / "flows_ok.py").write_text(MODULE)
    (tmp_path / "flows_raising.py").write_text("raise RuntimeError('no key is set')\n")
    (tmp_path / "flows_leaving.py").write_text("print('hello')\nraise SystemExit(3)\n")
    (tmp_path / "flows_lacking.py").write_text("import nothing_of_that_name\n")
    (tmp_path / "flows_package").mkdir()
    (tmp_path / "flows_package" / "__init__.py").write_text("")
    (tmp_path / "flows_package" / "inner.py").write_text(MODULE)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "version"),
    [("flows_ok:app", "2.0.0"), ("flows_ok:Holder.app", "3.0.0"), ("flows_package.inner:app", "2.0.0")],
)
def test_an_app_is_found_in_the_folder(folder: Path, name: str, version: str) -> None:
    assert load_app(name, folder).schema_version == version


def test_the_working_directory_is_looked_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert load_app("flows_ok:app") is load_app("flows_ok:app")


@pytest.mark.parametrize(
    "name", ["", "flows_ok", "flows_ok:", ":app", "flows ok:app", "../flows_ok:app", "a:b:c"]
)
def test_what_is_no_name_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"does not name an app.*module:object"):
        load_app(name, folder)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("flows_missing:app", "there is no module flows_missing"),
        ("flows_package.missing:app", "there is no module flows_package.missing"),
        ("flows_raising:app", r"importing flows_raising failed \(RuntimeError: no key is set\)"),
        ("flows_leaving:app", r"importing flows_leaving failed \(SystemExit: 3\)"),
        ("flows_lacking:app", r"importing flows_lacking failed \(ModuleNotFoundError"),
        ("flows_ok:apps", "there is no apps in flows_ok.*Did you mean app"),
        ("flows_ok:number", "number is of type int, not App"),
        ("flows_ok:App", "App is the class, not an object of it"),
    ],
)
def test_what_is_wrong_is_said(folder: Path, name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_app(name, folder)


def test_what_a_module_prints_is_no_data(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError):
        load_app("flows_leaving:app", folder)
    assert capsys.readouterr() == ("", "hello\n")


def test_a_signal_during_the_import_ends_us(folder: Path) -> None:
    (folder / "flows_slow.py").write_text(
        "from holdfast.cli.exits import Exit\nraise SystemExit(Exit.TERMINATED)\n"
    )
    with pytest.raises(SystemExit):
        load_app("flows_slow:app", folder)
