"""`python -m release.trial [NAME,...]`: tries wheel and sdist where nothing else is installed.

A name is `core`, an extra, or either with a manner: `core-lowest`, `core-sdist`, `core-3.13`, `burr-lowest`.
`control` is a wheel that must be refused; `left` is what has not passed yet with this wheel.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from release import control, declared
from release.archive import metadata_of
from release.build import DIST, ROOT, sum_of
from release.environment import Environment, TrialError, is_alone
from release.interpreters import HERE, found_pythons
from release.metadata import TESTED_PYTHONS
from release.outcome import Evidence, Outcome

EVIDENCE = ROOT / "build" / "evidence" / "release_trials.json"
PAGES = ROOT / "docs" / "integrations"
CONTROL = "control"


@dataclass(frozen=True, slots=True)
class Trial:
    """What is installed how, with which interpreter; no extra is the core."""

    extra: str = ""
    python: str = HERE
    is_lowest: bool = False
    is_sdist: bool = False

    @property
    def name(self) -> str:
        manner = ["lowest"] * self.is_lowest + ["sdist"] * self.is_sdist
        return "-".join([self.extra or "core", *([self.python] if self.python != HERE else []), *manner])


def all_trials(metadata: bytes, pythons: list[str]) -> Iterator[Trial]:
    """Name every trial: the core in all manners, and each extra with the newest and the lowest versions."""
    for python in pythons:
        yield Trial(python=python)
        yield Trial(python=python, is_lowest=True)
    yield Trial(is_sdist=True)
    yield Trial(is_sdist=True, is_lowest=True)
    for extra in declared.extras(metadata):
        yield Trial(extra)
        yield Trial(extra, is_lowest=True)


def tried(trial: Trial, folder: Path, interpreter: str) -> Outcome:
    """Install and use what a trial is of."""
    started = time.monotonic()
    environment = Environment(folder / trial.name)
    versions, said, problem = dict[str, str](), "", ""
    try:
        environment.make(interpreter)
        versions = _install(environment, trial)
        said = _use(environment, trial)
    except TrialError as fault:
        problem = str(fault)
    shutil.rmtree(environment.folder, ignore_errors=True)
    return Outcome(trial.name, trial.python, round(time.monotonic() - started, 1), versions, said, problem)


def _install(environment: Environment, trial: Trial) -> dict[str, str]:
    (archive,) = DIST.glob("*.tar.gz" if trial.is_sdist else "*.whl")
    metadata = metadata_of(next(DIST.glob("*.whl")))
    wanted = declared.needed(metadata, trial.extra, python=trial.python)
    core = set(map(str, declared.needed(metadata, python=trial.python)))
    what = f"{archive}[{trial.extra}]" if trial.extra else str(archive)
    # Only what is named directly is taken at its lowest, so everything that we declare is named.
    environment.install(what, *(map(str, wanted) if trial.is_lowest else ()), is_lowest=trial.is_lowest)
    installed = environment.installed()
    versions = {each.name: installed[each.name.lower()] for each in wanted}
    if trial.is_lowest:
        # What the core needs may be lifted by what the extra needs; its own bounds are tried without extras.
        own = [each for each in wanted if not trial.extra or str(each) not in core]
        check_lowest(versions, {each.name: declared.lowest(each) for each in own})
    return versions


def check_lowest(versions: dict[str, str], bounds: dict[str, str | None]) -> None:
    """Refuse a bound that was not tried: one that is missing, or that no version is at."""
    for name, bound in bounds.items():
        if bound is None or Version(versions[name]) > Version(bound):
            raise TrialError(
                f"{name} is declared from {bound} on, and {versions[name]} is the lowest there is"
            )


def _use(environment: Environment, trial: Trial) -> str:
    if not trial.extra:
        said = environment.run("smoke.py", "../README.md", files=(ROOT / "README.md",))
        return said + environment.run("absent.py")
    page = PAGES / f"{trial.extra.replace('-', '_')}.md"
    if page.exists():
        return environment.run("present.py", trial.extra, f"../{page.name}", files=(page,))
    return environment.run("present.py", trial.extra)


def main(names: str) -> None:
    """Try what is named, tell how it went, and end badly if anything did."""
    pythons = found_pythons()
    (wheel,) = DIST.glob("*.whl")
    trials = {trial.name: trial for trial in all_trials(metadata_of(wheel), list(pythons))}
    evidence = Evidence(EVIDENCE, sum_of(wheel))
    chosen = _chosen(names, [*trials, CONTROL], evidence)
    print(f"network: {'none while anything runs' if is_alone() else 'open, for only root can close it'}")
    outcomes = list[Outcome]()
    with tempfile.TemporaryDirectory(prefix="holdfast-trial-") as folder:
        # Root runs PostgreSQL as somebody else, who must be able to enter.
        Path(folder).chmod(0o755)
        for name in chosen:
            outcome = (
                control.tried(Path(folder), pythons[HERE])
                if name == CONTROL
                else tried(trials[name], Path(folder), pythons[trials[name].python])
            )
            _tell(outcome)
            evidence.add(outcome)
            outcomes.append(outcome)
    for python in sorted({*TESTED_PYTHONS} - {*pythons}):
        print(f"Python {python} is not on this machine and was not tried")
    sys.exit(f"{len(bad)} went wrong" if (bad := [each for each in outcomes if each.problem]) else 0)


def _chosen(names: str, known: list[str], evidence: Evidence) -> list[str]:
    if names == "all":
        return known
    if names == "left":
        return [name for name in known if name not in evidence.passed()]
    if unknown := {*names.split(",")} - {*known}:
        sys.exit(f"unknown: {', '.join(sorted(unknown))}. Known are: all, left, {', '.join(known)}")
    return names.split(",")


def _tell(outcome: Outcome) -> None:
    versions = " ".join(f"{name} {version}" for name, version in outcome.versions.items())
    verdict = "FAILED" if outcome.problem else "ok"
    print(f"{verdict:6} {outcome.name:24} {outcome.seconds:5.1f} s  {versions}", flush=True)
    for line in (outcome.said + outcome.problem).splitlines():
        print(f"       {line}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "all")
