"""Loading the app that a person names: `module:object`, or `file.py:object`, also in holdfast.toml.

The name comes from whoever runs the program, never out of a store: what is stored names handlers only, and
those are looked up in the app.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from holdfast.cli.exits import Exit
from holdfast.cli.group import did_you_mean
from holdfast.domain.errors import ConfigError

# Imported where it is used: help must not wait for it.
if TYPE_CHECKING:
    from holdfast.application.app import App

WORD = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_NAME = re.compile(rf"(?:(?P<file>.+\.py)|(?P<module>{WORD})):(?P<path>{WORD})")
_EXAMPLE = "Write module:object or file.py:object, such as `--app myproject.flows:app`."


def load_app(name: str, folder: str | Path | None = None) -> App:
    """Import a module and answer the app in it.

    Args:
        name: `module:object` or `file.py:object`.
        folder: where modules are looked for first; the working directory by default.

    Raises:
        ConfigError: the name is none, the module cannot be imported, or there is no app of that name in it.
    """
    from holdfast.application.app import App

    match = _NAME.fullmatch(name)
    if match is None:
        raise ConfigError("this does not name an app", place=name, hint=_EXAMPLE)
    place = Path(folder or Path.cwd())
    is_file = match["file"] is not None
    module = _of_file(place / match["file"], name) if is_file else _module(match["module"], str(place), name)
    found = attribute(module, match["path"], name, "See what the module defines.")
    if isinstance(found, App):
        return found
    raise _no_app(found, match["path"], name)


def _no_app(found: Any, path: str, name: str) -> ConfigError:
    """Say what was named instead of an app; a workflow is run by another command."""
    from holdfast.application.app import App
    from holdfast.execution.workflow import Workflow

    make = "Make one in the module: `app = holdfast.App()`, and name it."
    if isinstance(found, Workflow):
        hint = f"`holdfast resume ID --app {name}` runs a workflow. An app is something else. {make}"
        return ConfigError(f"{path} is a workflow, not an App", place=name, hint=hint)
    is_class = isinstance(found, type) and issubclass(found, App)
    kind = "the class, not an object of it" if is_class else f"of type {type(found).__name__}, not App"
    return ConfigError(f"{path} is {kind}", place=name, hint=make)


def _of_file(path: Path, name: str) -> ModuleType:
    """Import a file as the module of its name, unless another module has that name."""
    if not path.is_file():
        raise ConfigError("there is no such file", place=name, hint=_EXAMPLE)
    module = _module(path.stem, str(path.parent.resolve()), name)
    if os.path.realpath(getattr(module, "__file__", None) or "") == os.path.realpath(path):
        return module
    raise ConfigError(
        f"another module is called {path.stem}, too", place=name, hint="Give the file another name."
    )


def _module(module_name: str, folder: str, name: str) -> ModuleType:
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        # What a module prints is no data of ours.
        with redirect_stdout(sys.stderr):
            return importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        raise not_found(module_name, name, missing, folder, _EXAMPLE) from missing
    except (Exception, SystemExit) as problem:
        # A signal that is to end us is none of the module's doing.
        if isinstance(problem, SystemExit) and problem.code is Exit.TERMINATED:
            raise
        raise import_failed(module_name, name, problem) from problem


def not_found(
    module_name: str, name: str, missing: ModuleNotFoundError, folder: str, example: str
) -> ConfigError:
    """Say that the module that was named is not there, or that it needs one that is not."""
    if missing.name is None or not (module_name + ".").startswith(missing.name + "."):
        return import_failed(module_name, name, missing)
    hint = f"Looked in {folder} and in the Python path. {example}"
    return ConfigError(f"there is no module {missing.name}", place=name, hint=hint)


def import_failed(module_name: str, name: str, problem: BaseException) -> ConfigError:
    """Say that a module cannot be imported, and why; one that was named by its file is told by that."""
    file = name.rpartition(":")[0]
    again = shlex.quote(file) if file.endswith(".py") else f"-c 'import {module_name}'"
    return ConfigError(
        f"importing {module_name} failed ({type(problem).__name__}: {_said(problem)})",
        place=name,
        hint=f"Run `python {again}` to see where.",
    )


def _said(problem: BaseException) -> str:
    """Write what a problem says; Python names a file that cannot be read as code without its folder."""
    if isinstance(problem, SyntaxError) and problem.filename:
        return f"{problem.msg} ({os.path.relpath(problem.filename)}, line {problem.lineno})"
    return str(problem)


def attribute(module: ModuleType, path: str, name: str, otherwise: str) -> Any:
    """Find an object in a module by its dotted name.

    Args:
        module: where.
        path: its name.
        name: what a person wrote, for the error.
        otherwise: the hint where no other name is near.
    """
    found: Any = module
    for word in path.split("."):
        try:
            found = getattr(found, word)
        except AttributeError:
            known = [one for one in vars(module) if not one.startswith("_")]
            hint = did_you_mean(word, known) or otherwise
            raise ConfigError(f"there is no {word} in {module.__name__}", place=name, hint=hint) from None
    return found
