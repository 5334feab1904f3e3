"""The laws of the house, checked on the source itself. CONTRIBUTING.md says why each exists."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import holdfast
from holdfast.domain.errors import all_codes

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "holdfast"
TESTS = ROOT / "tests"
FRONT_DOOR = SOURCE / "__init__.py"

MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
LINE_LENGTH_MAX = 110

#: Rooms that wrap a technology and may import packages that are not ours.
THIRD_PARTY_ROOMS = {"adapters", "cli", "execution", "integrations", "server"}

#: Ways to read the world, which the domain must be told about instead.
WORLDLY_MODULES = {"asyncio", "logging", "os", "random", "secrets", "socket", "subprocess", "time"}
WORLDLY_CALLS = {"now", "utcnow", "today", "uuid1", "uuid4", "open", "input"}

#: Ways for stored bytes to become code.
REVIVING_MODULES = {"cloudpickle", "dill", "marshal", "pickle", "shelve", "yaml"}
REVIVING_CALLS = {"eval", "exec", "__import__"}

#: What would make `holdfast --help` feel slow.
SLOW_TO_IMPORT = {
    "asyncio",
    "backports.zstd",
    "cbor2",
    "cryptography",
    "re2",
    "msgspec",
    "ormsgpack",
    "pydantic",
    "sqlite3",
}

#: Modules without a test file of their own name, and the file that tests them instead.
TESTED_ELSEWHERE = {
    # Shapes without behaviour: the suite that every store must pass gives them their meaning.
    "ports.py": "test_conformance.py",
    "domain/record.py": "test_conformance.py",
    "domain/audit_entry.py": "domain/test_trail.py",
    # What two commands share, and the group that they are in.
    "cli/importing.py": "cli/test_import_langgraph_sqlite.py",
    "cli/import_langgraph.py": "cli/test_import_langgraph_sqlite.py",
    # Meaningful only together with the snapshots it compares.
    "application/comparison.py": "application/test_snapshot.py",
}

#: Rooms that opening a store, committing and restoring need nothing of.
LATE_ROOMS = {
    f"holdfast.{name}"
    for name in (
        "application.access",
        "application.audit.audit_log",
        "application.audit.log_keeping",
        "application.holding",
        "application.key_care",
        "application.observing",
        "application.privacy.erasing",
        "application.privacy.subject_export",
        "application.progress_files",
        "application.quarantine_files",
        "application.recording",
        "application.recovery",
        "application.removing",
        "application.requests",
        "application.retain",
        "application.sessions",
        "application.subjects",
        "application.travel",
        "application.upgrading",
        "application.validate",
        "domain.log_check",
        "domain.note",
        "domain.quarantine",
        "domain.recovery_plan",
        "domain.replay",
        "domain.session_record",
        "domain.telemetry",
    )
}

MODULES = sorted(path for path in SOURCE.rglob("*.py"))
ROOM_DOORS = [path for path in MODULES if path.name == "__init__.py" and path != FRONT_DOOR]
MIRRORED = [path for path in MODULES if path.name not in ("__init__.py", "__main__.py")]


def relative(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def room(path: Path) -> str:
    """Name the room a module is in; empty for the modules in the hall."""
    parts = path.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else ""


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(parse(path)))


def imported_packages(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and top-level name of every import, those inside functions too."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # A relative import has no module name of its own; it is ours in any case.
            yield node.lineno, "holdfast" if node.level else (node.module or "").partition(".")[0]


def called_names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and last name of every call: `now` for `datetime.now()`."""
    for node in nodes(path):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.lineno, node.func.id
            elif isinstance(node.func, ast.Attribute):
                yield node.lineno, node.func.attr


def plainly_called_names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and name of calls of a bare name: `exec(...)`, but not `pool.exec(...)`."""
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.lineno, node.func.id


Found = Callable[[Path], Iterator[tuple[int, str]]]


def offences(paths: Iterable[Path], found: Found, banned: set[str]) -> list[str]:
    """Say where modules have what they must not."""
    return [
        f"{relative(path)}:{line}: {name}" for path in paths for line, name in found(path) if name in banned
    ]


# Each law is one test that names whatever breaks it: one per module and law would be thousands.


def test_a_module_fits_on_a_few_screens() -> None:
    lengths = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > MODULE_LINES_MAX} == {}


def long_lines(path: Path) -> list[str]:
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    return [f"{relative(path)}:{number}" for number, line in lines if len(line) > LINE_LENGTH_MAX]


def test_lines_fit_the_page() -> None:
    assert [place for path in MODULES for place in long_lines(path)] == []


def long_functions(path: Path) -> list[str]:
    functions = (n for n in nodes(path) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    lengths = ((f, (f.end_lineno or f.lineno) - f.lineno + 1) for f in functions)
    return [f"{relative(path)}:{f.lineno}: {f.name}" for f, length in lengths if length > FUNCTION_LINES_MAX]


def test_a_function_is_read_at_one_glance() -> None:
    assert [place for path in MODULES for place in long_functions(path)] == []


def test_only_rooms_that_wrap_a_technology_import_third_parties() -> None:
    foreign = [
        f"{relative(path)}:{line}: {name}"
        for path in MODULES
        if room(path) not in THIRD_PARTY_ROOMS
        for line, name in imported_packages(path)
        if name not in sys.stdlib_module_names and name != "holdfast"
    ]
    assert foreign == []


def test_the_domain_never_asks_the_world() -> None:
    domain = [path for path in MODULES if room(path) == "domain"]
    assert domain
    assert offences(domain, imported_packages, WORLDLY_MODULES) == []
    assert offences(domain, called_names, WORLDLY_CALLS) == []


def test_stored_bytes_never_become_code() -> None:
    assert offences(MODULES, imported_packages, REVIVING_MODULES) == []
    assert offences(MODULES, plainly_called_names, REVIVING_CALLS) == []


def json_decoders(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and name of every call of the standard library's JSON decoder."""
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id == "json":
                yield node.lineno, node.func.attr


def test_json_is_decoded_where_it_is_known_what_the_decoder_can_raise() -> None:
    decoders = {SOURCE / "domain" / name for name in ("json_reading.py", "plainjson.py")}
    others = [path for path in MODULES if path not in decoders]
    assert offences(others, json_decoders, {"load", "loads"}) == []
    assert all(offences([path], json_decoders, {"loads"}) for path in decoders)


def test_only_the_command_line_prints() -> None:
    assert offences((p for p in MODULES if room(p) != "cli"), plainly_called_names, {"print"}) == []


def test_the_door_of_a_room_holds_its_name_plate_only() -> None:
    assert ROOM_DOORS
    for path in ROOM_DOORS:
        tree = parse(path)
        assert ast.get_docstring(tree), f"{relative(path)} needs one sentence on what the room is for"
        assert len(tree.body) == 1, relative(path)


def file_of_tests(path: Path) -> str:
    """Say which file, in which folder of the tests, a module must be tested by."""
    if elsewhere := TESTED_ELSEWHERE.get(relative(path)):
        return elsewhere
    return f"{room(path)}/**/test_{path.stem.removeprefix('_')}.py".removeprefix("/**/")


def test_every_module_has_its_test_file() -> None:
    wanted = {relative(path): file_of_tests(path) for path in MIRRORED}
    assert {name: file for name, file in wanted.items() if not any(TESTS.glob(file))} == {}


def test_the_table_of_modules_tested_elsewhere_is_not_stale() -> None:
    assert [name for name in TESTED_ELSEWHERE if not (SOURCE / name).is_file()] == []


def names_for_type_checkers(tree: ast.Module) -> dict[str, tuple[str, ...]]:
    """Read the imports that the front door makes only while types are checked."""
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    imports = (node for node in guarded.body if isinstance(node, ast.ImportFrom))
    return {node.module or "": tuple(alias.name for alias in node.names) for node in imports}


def test_the_front_door_exports_exactly_what_it_lists() -> None:
    assert holdfast.__all__ == sorted(holdfast.__all__)
    fetched = {name for names in holdfast._ROOMS.values() for name in names}
    assert fetched | {"__version__"} == set(holdfast.__all__)
    assert names_for_type_checkers(parse(FRONT_DOOR)) == holdfast._ROOMS


@pytest.mark.parametrize("name", holdfast.__all__)
def test_every_listed_name_is_there(name: str) -> None:
    assert getattr(holdfast, name) is not None
    assert name in dir(holdfast)


def test_a_name_that_is_not_listed_is_no_attribute() -> None:
    name = "nothing"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(holdfast, name)


def modules_loaded_by(statement: str) -> set[str]:
    """Run a statement in a fresh interpreter and name the modules it has loaded."""
    program = f"import sys; {statement}; sys.stdout.write(' '.join(sys.modules))"
    # Measuring coverage loads modules of its own into child processes.
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env
    )
    return set(result.stdout.split())


def test_the_front_door_opens_no_room_by_itself() -> None:
    assert {name for name in modules_loaded_by("import holdfast") if name.startswith("holdfast.")} == set()


def test_the_command_line_starts_without_what_help_does_not_need() -> None:
    assert modules_loaded_by("import holdfast.cli.main") & SLOW_TO_IMPORT == set()


@pytest.mark.parametrize("scheme", ["file", "sqlite"])
def test_the_first_checkpoint_waits_for_no_room_that_it_does_not_use(scheme: str, tmp_path: Path) -> None:
    loaded = modules_loaded_by(
        f"import holdfast; service = holdfast.open({f'{scheme}:{tmp_path}/store'!r}); "
        "service.create_checkpoint('W', {'n': 1}); service.restore_checkpoint('W@latest'); service.close()"
    )
    assert "holdfast.application.engine" in loaded
    assert loaded & (LATE_ROOMS | {"asyncio", "cryptography", "difflib", "socket", "tomllib"}) == set()


def test_every_error_code_is_documented_and_nothing_else() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", page, flags=re.MULTILINE)
    assert dict(documented) == {code: kind.__name__ for code, kind in all_codes().items()}
