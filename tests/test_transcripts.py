"""Pages that show commands and what they print are followed as a reader would."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import holdfast
from holdfast.cli.main import main
from tests.transcripts import Step, differences, fits, steps

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.sweep
def test_the_tutorial_does_and_prints_what_it_says(tmp_path: Path) -> None:
    assert differences(page("tutorial"), tmp_path) == []


@pytest.fixture
def handed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What an auditor is given: an export, the key, a head of the visit before, the program."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "keys"))
    assert main(["--store", "loans", "--quiet", "init"]) == 0
    for number, why in (
        (17, "three months of income were seen"),
        (18, "the income is new"),
        (19, "all is paid"),
    ):
        with holdfast.open("loans", session="loan-desk", actor="svc-loans", end_session=False) as service:
            service.create_checkpoint(f"loan-{number}", {"amount": 5000})
            service.record_decision(f"loan-{number}", "lend", rationale=why, confidence=0.8, agent_id="judge")
        if number == 17:
            assert main(["--store", "loans", "--quiet", "audit", "export", "june"]) == 0
    assert main(["--store", "loans", "--quiet", "audit", "export", "evidence"]) == 0
    shutil.copy("june/checkpoint", "june.head")
    shutil.copy("evidence/vkeys", "log.vkey")
    shutil.copy(ROOT / "tests" / "independent_verifier.py", tmp_path)
    return tmp_path


@pytest.mark.sweep
def test_the_auditors_guide_says_what_an_auditor_sees(handed_over: Path) -> None:
    assert differences(page("auditor"), handed_over) == []


@pytest.mark.sweep
def test_the_store_that_is_shown_passes_the_suite(tmp_path: Path) -> None:
    assert differences(page("writing_a_store"), tmp_path) == []


PAGE = """\
<!-- file: greeting.txt -->
```text
hello
```

```console
$ cat greeting.txt
hello
$ false
$ echo $?
1
$ pip install nothing
```
"""


def test_a_page_is_read_as_files_and_commands() -> None:
    assert list(steps(PAGE)) == [
        Step(name="greeting.txt", text="hello\n"),
        Step(command="cat greeting.txt", printed=("hello",)),
        Step(command="false"),
        Step(command="echo $?", printed=("1",)),
    ]


def test_what_is_shown_is_what_happens(tmp_path: Path) -> None:
    assert differences(PAGE, tmp_path) == []


@pytest.mark.parametrize(
    "lie",
    [
        PAGE.replace("hello\n$", "good day\n$"),
        PAGE.replace("\n1\n", "\n2\n"),
        PAGE.replace("$ echo $?\n1\n", ""),
        PAGE.replace("hello\n$ f", "hello\nand more\n$ f"),
    ],
    ids=["output", "exit code", "hidden failure", "more"],
)
def test_what_is_shown_and_does_not_happen_is_found(lie: str, tmp_path: Path) -> None:
    assert len(differences(lie, tmp_path)) == 1


def test_what_differs_from_run_to_run_is_compared_by_its_shape() -> None:
    shown = ("WF-1@2  2026-01-11 14:30:00  1.3 KB", "…", "a … z")
    assert fits(shown, "WF-1@2   2027-12-31 23:59:59   715 B\nany\nlines\na to z\n")
    assert not fits(shown, "WF-1@3   2027-12-31 23:59:59   715 B\nany\nlines\na to z\n")
    assert not fits(shown, "WF-1@2   yesterday   715 B\nany\nlines\na to z\n")
