"""Loading the workflow that a person names on the command line: `module:workflow`, or `file.py:workflow`.

The name comes from whoever runs the program, never out of a store: what a store remembers is shown as a hint.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from holdfast.cli.app_loading import WORD, attribute, import_failed, not_found
from holdfast.cli.exits import Exit
from holdfast.domain.errors import CheckpointError, ConfigError

# Imported where it is used: help must not wait for it.
if TYPE_CHECKING:
    from holdfast.execution.workflow import Workflow

_NAME = re.compile(rf"(?:(?P<file>.+\.py)|(?P<module>{WORD})):(?P<path>{WORD})")
_EXAMPLE = "Write module:workflow or file.py:workflow, such as `myproject.flows:team`."


def load_workflow(name: str, folder: str | Path | None = None) -> Workflow:
    """Import a module or a file and answer the workflow in it.

    Args:
        name: `module:workflow` or `file.py:workflow`.
        folder: where modules are looked for first; the working directory by default.

    Raises:
        ConfigError: the name is none, its module cannot be imported, or there is no such workflow in it.
    """
    from holdfast.execution.workflow import Workflow

    module, path = _module_of(name, "workflow", folder)
    found = attribute(module, path, name, _meant(module))
    if isinstance(found, Workflow):
        return found
    is_class = isinstance(found, type) and issubclass(found, Workflow)
    kind = "the class, not an object of it" if is_class else f"of type {type(found).__name__}, not Workflow"
    raise ConfigError(f"{path} is {kind}", place=name, hint=_meant(module))


def load_class(name: str) -> type:
    """Import a module or a file and answer the class in it.

    Raises:
        ConfigError: the name is none, its module cannot be imported, or there is no such class in it.
    """
    module, path = _module_of(name, "class", None)
    found = attribute(module, path, name, "")
    if isinstance(found, type):
        return found
    raise ConfigError(f"{path} is of type {type(found).__name__}, not a class", place=name)


def load_function(name: str) -> Callable[..., Any]:
    """Import a module or a file and answer the function in it.

    Raises:
        ConfigError: the name is none, its module cannot be imported, or there is no such function in it.
    """
    module, path = _module_of(name, "function", None)
    found = attribute(module, path, name, "")
    if callable(found) and not isinstance(found, type):
        return cast(Callable[..., Any], found)
    raise ConfigError(f"{path} is of type {type(found).__name__}, not a function", place=name)


def _module_of(name: str, kind: str, folder: str | Path | None) -> tuple[ModuleType, str]:
    """Import what a name begins with; answer it and the rest."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ConfigError(f"this does not name a {kind}", place=name, hint=_EXAMPLE)
    if match["file"]:
        return _from_file(Path(folder or Path.cwd()) / match["file"], name), match["path"]
    return _from_path(match["module"], str(folder or Path.cwd()), name), match["path"]


def _from_path(module_name: str, folder: str, name: str) -> ModuleType:
    _look_in(folder)
    try:
        return _imported(module_name, name)
    except ModuleNotFoundError as missing:
        raise not_found(module_name, name, missing, folder, _EXAMPLE) from missing


def _from_file(path: Path, name: str) -> ModuleType:
    """Import a file as the module of its name, so that processes it starts find its functions again."""
    if not path.is_file():
        raise ConfigError("there is no such file", place=name, hint=_EXAMPLE)
    known = sys.modules.get(path.stem)
    if known is not None and not _is_from(known, path):
        raise ConfigError(
            f"a module {path.stem} is loaded already, from elsewhere",
            place=name,
            hint="Give the file another name.",
        )
    _look_in(str(path.parent.resolve()))
    try:
        module = _imported(path.stem, name)
    except ModuleNotFoundError as missing:
        raise import_failed(path.stem, name, missing) from missing
    if _is_from(module, path):
        return module
    raise ConfigError(
        f"another module is called {path.stem}, too", place=name, hint="Give the file another name."
    )


def _is_from(module: ModuleType, path: Path) -> bool:
    place = getattr(module, "__file__", None)
    return place is not None and os.path.realpath(place) == os.path.realpath(path)


def _look_in(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _imported(module_name: str, name: str) -> ModuleType:
    try:
        # What a module prints is no data of ours.
        with redirect_stdout(sys.stderr):
            return importlib.import_module(module_name)
    except ModuleNotFoundError:
        raise
    except CheckpointError as problem:
        # A workflow that cannot be declared says so better than we could.
        place = f"{name} {problem.place}".strip()
        raise ConfigError(problem.message, place=place, hint=problem.hint) from None
    except (Exception, SystemExit) as problem:
        # A signal that is to end us is none of the module's doing.
        if isinstance(problem, SystemExit) and problem.code is Exit.TERMINATED:
            raise
        raise import_failed(module_name, name, problem) from problem


def _meant(module: ModuleType) -> str:
    """Name the workflows that a module has."""
    from holdfast.execution.workflow import Workflow

    known = [name for name, value in vars(module).items() if isinstance(value, Workflow)]
    if known:
        return f"Workflows in {module.__name__}: {', '.join(known)}."
    return 'Make one in the module: `team = holdfast.Workflow("team")`, and name it.'
