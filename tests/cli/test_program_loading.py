"""A workflow is loaded by the name that a person gave, and what is wrong with it is said."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.program_loading import load_workflow
from holdfast.domain.errors import ConfigError

MODULE = """
import holdfast

team = holdfast.Workflow("team")
number = 7
kind = holdfast.Workflow

class Holder:
    team = holdfast.Workflow("held")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    path, modules = list(sys.path), set(sys.modules)
    (tmp_path / "teams_ok.py").write_text(MODULE)
    (tmp_path / "teams_raising.py").write_text("raise RuntimeError('no key is set')\n")
    (tmp_path / "teams_leaving.py").write_text("print('hello')\nraise SystemExit(3)\n")
    (tmp_path / "teams_lacking.py").write_text("import nothing_of_that_name\n")
    (tmp_path / "teams_wrong.py").write_text("import holdfast\nholdfast.Workflow('a#b')\n")
    (tmp_path / "teams_none.py").write_text("number = 7\n")
    (tmp_path / "json.py").write_text(MODULE)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "teams_inside.py").write_text(MODULE + "import teams_beside\n")
    (tmp_path / "inner" / "teams_beside.py").write_text("")
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("teams_"):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("teams_ok:team", "team"),
        ("teams_ok.py:team", "team"),
        ("teams_ok:Holder.team", "held"),
        ("inner/teams_inside.py:team", "team"),
    ],
)
def test_a_workflow_is_found_in_a_module_or_a_file(folder: Path, name: str, called: str) -> None:
    assert load_workflow(name, folder).name == called


def test_a_file_is_imported_once_under_its_own_name(folder: Path) -> None:
    assert load_workflow("teams_ok.py:team", folder) is load_workflow("teams_ok:team", folder)
    assert "teams_ok" in sys.modules


@pytest.mark.parametrize("name", ["", "teams_ok", "teams_ok:", ":team", "teams ok:team", "a:b:c"])
def test_what_is_no_name_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"does not name a workflow.*module:workflow"):
        load_workflow(name, folder)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("teams_gone:team", r"there is no module teams_gone.*Looked in"),
        ("teams_gone.py:team", r"there is no such file"),
        ("teams_raising:team", r"RuntimeError: no key is set.*python -c"),
        ("teams_raising.py:team", r"RuntimeError: no key is set"),
        ("teams_leaving:team", r"SystemExit: 3"),
        ("teams_lacking:team", r"importing teams_lacking failed.*nothing_of_that_name"),
        ("teams_lacking.py:team", r"importing teams_lacking failed.*nothing_of_that_name"),
        ("teams_wrong:team", r"holds one of"),
        ("teams_ok:taem", r"there is no taem in teams_ok.*Did you mean team"),
        ("teams_ok:zzz", r"Workflows in teams_ok: team\."),
        ("teams_ok:number", r"of type int, not Workflow.*Workflows in teams_ok: team"),
        ("teams_ok:kind", r"the class, not an object of it"),
        ("teams_none:number", r"Make one in the module"),
        ("json.py:team", r"a module json is loaded already"),
    ],
)
def test_what_is_wrong_is_said(folder: Path, name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=rf"(?s){said}"):
        load_workflow(name, folder)


def test_a_file_that_is_no_code_is_told_with_its_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "inner" / "teams_torn.py").write_text("\nteam = (\n")
    monkeypatch.chdir(folder)
    with pytest.raises(ConfigError) as refusal:
        load_workflow("inner/teams_torn.py:team")
    assert "SyntaxError: '(' was never closed (inner/teams_torn.py, line 2)" in refusal.value.message
    assert "`python inner/teams_torn.py`" in refusal.value.hint


def test_what_a_module_prints_is_no_data(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError):
        load_workflow("teams_leaving:team", folder)
    assert capsys.readouterr() == ("", "hello\n")


def test_the_working_directory_is_looked_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert load_workflow("teams_ok:team").name == "team"


def test_a_file_whose_name_another_module_has_in_the_path_is_refused(folder: Path) -> None:
    (folder / "inner" / "teams_ok.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    sys.path.insert(1, str(folder / "inner"))
    with pytest.raises(ConfigError, match="another module is called teams_ok"):
        load_workflow("inner/teams_ok.py:team", folder)
