"""What became of each mutant, kept so that the next run goes on, and told as scores.

A mutant that was killed stays so for as long as its module and the test that killed it are the same. One that
survived is tried again when any of the tests has changed.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.mutation.equivalent import why_equivalent
from tests.mutation.modules import SUBJECTS, files_of_tests
from tests.mutation.mutants import mutants_of
from tests.mutation.trying import Job

#: A mutant that never ends is noticed as well.
NOTICED = ("killed", "timeout")


@dataclass(frozen=True, slots=True)
class Tried:
    """How one mutant fared, and the states of module and tests that this holds for."""

    name: str
    module: str
    function: str
    line: int
    change: str
    outcome: str
    killer: str
    source: str = ""
    tests: str = ""

    @classmethod
    def of(cls, job: Job, outcome: str, killer: str) -> Tried:
        mutant = job.mutant
        return cls(
            mutant.name_in(job.module),
            job.module,
            mutant.function,
            mutant.line,
            mutant.change,
            outcome,
            killer,
        )


class Ledger:
    """A line for each mutant that was tried, appended to a file."""

    def __init__(self, folder: Path, copy: Path, sources: dict[str, str]) -> None:
        self._folder = folder
        self._copy = copy
        self._sources = {module: _digest(source) for module, source in sources.items()}
        self._all = {
            module: {mutant.name_in(module) for mutant in mutants_of(source)}
            for module, source in sources.items()
        }
        self._tests = _digest(*((copy / name).read_text(encoding="utf-8") for name in files_of_tests(copy)))
        self._known = {one.name: one for one in self._read() if self._holds(one)}

    @property
    def done(self) -> int:
        return len(self._known)

    def is_done(self, job: Job) -> bool:
        return job.mutant.name_in(job.module) in self._known

    def add(self, tried: Tried) -> None:
        digest = self._test_digest(tried)
        line = asdict(tried) | {"source": self._sources[tried.module], "tests": digest}
        self._known[tried.name] = Tried(**line)
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "ledger.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def write(self) -> list[str]:
        """Write result.json, and say the scores."""
        modules = {module: self._counts(module) for module in self._all}
        subjects = {
            subject: _sum([modules[module] for module in members if module in modules])
            for subject, members in SUBJECTS.items()
        }
        told = {
            "subjects": subjects,
            "total": _sum(list(modules.values())),
            "modules": modules,
            "survivors": [
                self._told(one)
                for one in sorted(self._known.values(), key=_place)
                if _is_alive(one) and one.name in self._all[one.module]
            ],
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "result.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        return [
            f"{name}: {_line(counts)}"
            for name, counts in {**modules, **subjects, "total": told["total"]}.items()
        ]

    def _holds(self, one: Tried) -> bool:
        return self._sources.get(one.module) == one.source and self._test_digest(one) == one.tests

    def _test_digest(self, one: Tried) -> str:
        """Name the state of the test that killed a mutant, or of all tests where none did."""
        file = self._copy / one.killer.partition("::")[0]
        return _digest(file.read_text(encoding="utf-8")) if one.killer and file.is_file() else self._tests

    def _read(self) -> list[Tried]:
        path = self._folder / "ledger.jsonl"
        found = []
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            # A run that was killed may have left half a line: that mutant is tried again.
            with suppress(ValueError, TypeError):
                found.append(Tried(**json.loads(line)))
        return found

    def _counts(self, module: str) -> dict[str, Any]:
        mine = [one for one in self._known.values() if one.module == module and one.name in self._all[module]]
        outcomes = Counter("equivalent" if _is_excused(one) else one.outcome for one in mine)
        names = ("killed", "timeout", "survived", "unreached", "equivalent")
        return _scored({"mutants": len(self._all[module]), **{name: outcomes[name] for name in names}})

    def _told(self, one: Tried) -> dict[str, Any]:
        line = {name: getattr(one, name) for name in ("module", "line", "function", "change", "outcome")}
        why = why_equivalent(one.module, one.function, one.change)
        return line | ({"equivalent": why} if why else {})


def _place(one: Tried) -> tuple[str, int]:
    return one.module, one.line


def _is_alive(one: Tried) -> bool:
    return one.outcome not in NOTICED


def _is_excused(one: Tried) -> bool:
    return _is_alive(one) and why_equivalent(one.module, one.function, one.change) is not None


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def _sum(counts: list[dict[str, Any]]) -> dict[str, Any]:
    names = ("mutants", "killed", "timeout", "survived", "unreached", "equivalent")
    return _scored({name: sum(one[name] for one in counts) for name in names})


def _scored(counts: dict[str, Any]) -> dict[str, Any]:
    """Add the share of the mutants that were noticed among those that were tried and could be."""
    noticed = counts["killed"] + counts["timeout"]
    alive = counts["survived"] + counts["unreached"]
    return counts | {
        "tried": noticed + alive + counts["equivalent"],
        "score": _share(noticed, noticed + alive),
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _line(counts: dict[str, Any]) -> str:
    score = "none tried" if counts["score"] is None else f"{counts['score']:.1%}"
    names = ("killed", "timeout", "survived", "unreached", "equivalent")
    return f"{score}, {counts['tried']} of {counts['mutants']} tried: " + ", ".join(
        f"{counts[name]} {name}" for name in names
    )
