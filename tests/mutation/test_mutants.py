"""The mutator itself: which faults it makes, that they are put in, and that a weak test lets one live."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.ledger import Ledger, Tried
from tests.mutation.modules import SUBJECTS, all_modules, files_of_tests
from tests.mutation.mutants import mutants_of, put_into
from tests.mutation.trying import Job

ROOT = Path(__file__).parent.parent.parent

SOURCE = '''
from functools import lru_cache

def is_adult(age):
    """Tell."""
    return age >= 18

class Counter:
    def __init__(self):
        self.total = 0

    def add(self, number):
        if number < 0:
            raise ValueError("negative")
        self.total += number

    @property
    def half(self):
        return self.total // 2

    @staticmethod
    @lru_cache
    def both(one, other):
        return one and not other
'''


def changes(source: str) -> set[str]:
    return {mutant.change for mutant in mutants_of(source)}


def imported(source: str) -> ModuleType:
    module = ModuleType("subject")
    exec(compile(source, "subject.py", "exec"), module.__dict__)
    return module


def with_fault(source: str, change: str) -> ModuleType:
    module = imported(source)
    [mutant] = [one for one in mutants_of(source) if one.change == change]
    put_into(module, source, mutant)
    return module


def test_faults_of_each_kind_are_made() -> None:
    assert changes(SOURCE) == {
        "age >= 18 -> age > 18",
        "18 -> 19",
        "return age >= 18 -> return None",
        "self.total = 0 -> pass",
        "0 -> 1",
        "if number < 0 -> if not (...)",
        "number < 0 -> number <= 0",
        "raise ValueError('negative') -> pass",
        "self.total += number -> self.total -= number",
        "self.total += number -> pass",
        "return self.total // 2 -> return None",
        "self.total // 2 -> self.total * 2",
        "2 -> 3",
        "return one and (not other) -> return None",
        "one and (not other) -> one or not other",
        "not other -> other",
    }


def test_words_of_errors_annotations_and_constants_of_modules_are_left_alone() -> None:
    source = 'LIMIT = 3\n\ndef f(x: int = 3) -> "int":\n    """Do 3."""\n    raise ValueError(f"{x + 1}")\n'
    assert changes(source) == {"raise ValueError(f'{x + 1}') -> pass"}


@pytest.mark.parametrize(
    "change, shown",
    [
        ("age >= 18 -> age > 18", lambda module: not module.is_adult(18)),
        ("self.total // 2 -> self.total * 2", lambda module: _counted(module, 3).half == 6),
        ("self.total += number -> pass", lambda module: _counted(module, 3).total == 0),
        ("not other -> other", lambda module: module.Counter.both(True, True)),
    ],
)
def test_a_fault_is_put_into_functions_methods_and_what_is_decorated(change, shown) -> None:
    assert not shown(imported(SOURCE))
    assert shown(with_fault(SOURCE, change))


def _counted(module: ModuleType, number: int):
    counter = module.Counter()
    counter.add(number)
    return counter


def test_every_module_that_gets_faults_is_there_and_has_tests() -> None:
    assert all((ROOT / "src/holdfast" / f"{module}.py").is_file() for module in all_modules())
    assert len(files_of_tests(ROOT)) >= len(all_modules())


def test_every_mutant_that_is_called_equivalent_can_be_made() -> None:
    made = {
        (module, mutant.function, mutant.change)
        for module in all_modules()
        for mutant in mutants_of((ROOT / "src/holdfast" / f"{module}.py").read_text(encoding="utf-8"))
    }
    assert set(EQUIVALENT) <= made


def _ledger(folder: Path, test: str = "assert True") -> tuple[Ledger, Job]:
    [module] = SUBJECTS["retention"][:1]
    mirrored = folder / "copy" / f"tests/domain/test_{module.rpartition('/')[2]}.py"
    mirrored.parent.mkdir(parents=True, exist_ok=True)
    mirrored.write_text(test, encoding="utf-8")
    source = "def f(a):\n    return a < 1\n"
    ledger = Ledger(folder / "result", folder / "copy", {module: source})
    return ledger, Job(module, source, mutants_of(source)[0])


def test_what_survived_is_tried_again_when_a_test_changes_what_was_killed_with_its_killer(tmp_path) -> None:
    ledger, job = _ledger(tmp_path)
    killed = Job(job.module, job.source, mutants_of(job.source)[1])
    ledger.add(Tried.of(job, "survived", ""))
    ledger.add(Tried.of(killed, "killed", "tests/domain/test_retention.py::test_x"))
    again, _ = _ledger(tmp_path)
    assert again.is_done(job) and again.is_done(killed)
    changed, _ = _ledger(tmp_path, "assert 1")
    assert not changed.is_done(job) and not changed.is_done(killed)


def test_the_score_counts_what_was_noticed_among_what_was_tried(tmp_path) -> None:
    ledger, job = _ledger(tmp_path)
    for mutant, outcome in zip(mutants_of(job.source), ("survived", "killed", "timeout"), strict=True):
        ledger.add(Tried.of(Job(job.module, job.source, mutant), outcome, ""))
    assert "66.7%, 3 of 3 tried" in ledger.write()[-1]


WEAK, STRONG = "assert removed(30)", "assert removed(30) and not removed(7)"


@pytest.mark.parametrize("test, outcome", [(WEAK, "survived"), (STRONG, "killed")])
def test_a_weak_test_lets_a_fault_live_that_a_strong_one_notices(tmp_path, test, outcome) -> None:
    """The whole way, on a package of its own: survey, fork, judge."""
    program = f"""
import sys
from pathlib import Path
from tests.mutation.mutants import mutants_of
from tests.mutation.trying import Folders, Job, Trying
import pytest
source = "def removed(days):\\n    return days > 7\\n"
Path("holdfast").mkdir()
Path("holdfast/__init__.py").write_text("")
Path("holdfast/keep.py").write_text(source)
Path("test_keep.py").write_text("from holdfast.keep import removed\\ndef test_it():\\n    {test}\\n")
sys.path.insert(0, ".")
outcomes = []
here = Path.cwd()
jobs = [Job("keep", source, mutant) for mutant in mutants_of(source)]
folders = Folders(here / "holdfast", here, here / "notes", source)
trying = Trying(folders, jobs, 1e12, lambda *told: outcomes.append(told))
pytest.main(["-q", "-p", "no:cacheprovider", "test_keep.py"], [trying])
print(*(f"{{job.mutant.change}}: {{outcome}}" for job, outcome, _ in outcomes), sep="\\n")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert f"days > 7 -> days >= 7: {outcome}" in done.stdout, done.stdout
