"""Try mutants of a copy of the source for some minutes: `python -m tests.mutation --minutes 20`."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.mutation.ledger import Ledger, Tried
from tests.mutation.modules import all_modules, files_of_tests
from tests.mutation.mutants import functions_of, mutants_of
from tests.mutation.trying import Folders, Job, Trying

ROOT = Path(__file__).parent.parent.parent
COPIED = ("src", "tests", "docs", "pyproject.toml", "README.md")


def main() -> int:
    arguments = _arguments()
    if arguments.copy is None:
        return _in_a_copy(arguments)
    deadline = time.time() + 60 * arguments.minutes
    sources = {module: _source(arguments.copy, module) for module in arguments.modules or all_modules()}
    ledger = Ledger(arguments.result, arguments.copy, sources)
    jobs = [
        Job(module, source, mutant) for module, source in sources.items() for mutant in mutants_of(source)
    ]
    jobs = sorted((job for job in jobs if not ledger.is_done(job)), key=lambda job: job.mutant.order)
    print(f"{len(jobs)} mutants to try, {ledger.done} known", flush=True)
    reach = arguments.result / "reach"
    reach.mkdir(parents=True, exist_ok=True)
    subjects = "\n".join(
        f"{module}:{name}"
        for module in all_modules()
        for name in functions_of(_source(arguments.copy, module))
    )
    folders = Folders(arguments.copy / "src/holdfast", reach, arguments.copy.parent / "notes", subjects)
    trying = Trying(folders, jobs, deadline, lambda *told: ledger.add(Tried.of(*told)))
    outcome = pytest.main(_options(arguments.copy), [trying])
    for line in ledger.write():
        print(line)
    return int(outcome not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="begin no mutant after so long")
    parser.add_argument("--copy", type=Path, help="the copy to work in; made where none is named")
    parser.add_argument("--result", type=Path, default=ROOT / "build/mutation", help="where the result lies")
    parser.add_argument("modules", nargs="*", help="modules, as domain/retention; all where none is named")
    return parser.parse_args()


def _in_a_copy(arguments: argparse.Namespace) -> int:
    """Start over in a copy: others may change the source meanwhile, and nothing of ours lands in it."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-mutation-"))
    tree = folder / "tree"
    try:
        for name in COPIED:
            _copy(ROOT / name, tree / name)
        os.chdir(tree)
        os.environ["PYTHONPATH"] = f"{tree}{os.pathsep}{tree / 'src'}"
        options = [
            "--minutes",
            str(arguments.minutes),
            "--copy",
            str(tree),
            "--result",
            str(arguments.result),
        ]
        command = [sys.executable, "-m", "tests.mutation", *options, *arguments.modules]
        return os.spawnv(os.P_WAIT, sys.executable, command)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def _source(copy: Path, module: str) -> str:
    return (copy / "src/holdfast" / f"{module}.py").read_text(encoding="utf-8")


def _options(copy: Path) -> list[str]:
    without = ("cacheprovider", "xdist", "randomly")
    return [
        "-q",
        f"--rootdir={copy}",
        f"--basetemp={copy.parent / 'temporary'}",
        "-o",
        "faulthandler_timeout=0",
        *(option for name in without for option in ("-p", f"no:{name}")),
        *files_of_tests(copy),
    ]


if __name__ == "__main__":
    sys.exit(main())
