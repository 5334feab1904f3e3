"""Without an extra: whoever asks for what it brings is told its name, by an error of a class that stays.

`python absent.py [EXTRA ...]` asks for each (or those named) and ends with what was not told well.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import holdfast
from holdfast.domain.errors import ConfigError

SECONDS_MAX = 60
#: The names of the modules that translate for frameworks, by extra.
TRANSLATIONS = {
    "agent-framework": "agent_framework",
    "burr": "burr",
    "crewai": "crewai",
    "google-adk": "google_adk",
    "haystack": "haystack",
    "langgraph": "langgraph",
    "llama-index": "llama_index",
    "mcp": "mcp_server",
    "openai-agents": "openai_agents",
    "pydantic-ai": "pydantic_ai",
}


def opened(url: str = "file:store", **settings: Any) -> Callable[[], None]:
    """Answer what opens a store with settings, and writes into it."""

    def ask() -> None:
        with holdfast.open(url, **settings) as hf:
            hf.create_checkpoint("WF", {"step": 1})

    return ask


def imported(module: str) -> Callable[[], None]:
    """Answer what imports a module of ours."""
    return lambda: vars(importlib.import_module(f"holdfast.{module}")).get("", None)


def made(module: str, name: str, *args: object) -> Callable[[], None]:
    """Answer what makes something of a class of ours, which is there without the extra."""
    return lambda: getattr(importlib.import_module(f"holdfast.{module}"), name)(*args)


def signing() -> None:
    """Ask for what checks signatures."""
    importlib.import_module("holdfast.bootstrap").signature_check()


ASK: dict[str, Callable[[], None]] = {
    **{extra: imported(f"integrations.{module}") for extra, module in TRANSLATIONS.items()},
    "audit": signing,
    "cbor": opened(mode="compliance"),
    "dask": made("execution.engines.dask_engine", "DaskEngine", "tcp://127.0.0.1:1"),
    "embedded-postgres": opened("postgresql+embedded:pg"),
    "otel": opened(tracing=True),
    "postgres": opened("postgresql://127.0.0.1:1/none"),
    "ray": made("execution.engines.ray_engine", "RayEngine"),
    "redaction": opened(redact_engine="re2"),
    "server": opened(metrics=True),
}
#: Commands that need an extra; their error is the same, printed.
COMMANDS = {
    "audit": ["audit", "anchor"],
    "langgraph-import": ["import", "langgraph-sqlite", "kept.db"],
    "mcp": ["mcp"],
    "server": ["serve"],
}
#: Whom nobody needs to ask for: without the extra the same is done in another way.
DONE_OTHERWISE = {
    "cli": "lines instead of bars",
    "sqlite": "the SQLite that Python was linked with, its journal chosen so that it is safe",
}
#: The translation is asked for first; whoever has it is told of the rest.
NAMED_FIRST = {"langgraph-import": "langgraph"}


def problem(extra: str) -> str | None:
    """Ask for what an extra brings, and say what was wrong with the answer."""
    if extra in ASK:
        try:
            ASK[extra]()
        except ConfigError as refused:
            if f"holdfast[{extra}]" not in (refused.hint or ""):
                return f"{extra}: the error does not name the extra: {refused}"
        except Exception as fault:
            return f"{extra}: {type(fault).__name__} instead of ConfigError: {fault}"
        else:
            return f"{extra}: nothing was missed"
    return command_problem(extra, COMMANDS[extra]) if extra in COMMANDS else None


def command_problem(extra: str, command: list[str]) -> str | None:
    """Run a command that needs an extra, and say what was wrong with the answer."""
    # Whatever this interpreter was told not to look at, the command does not look at either.
    told = ["-I"] * sys.flags.isolated + ["-S"] * sys.flags.no_site
    done = subprocess.run(
        [sys.executable, *told, "-m", "holdfast", *command],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=SECONDS_MAX,
    )
    named = f"holdfast[{NAMED_FIRST.get(extra, extra)}]"
    if done.returncode == 0 or named not in done.stderr or "Traceback" in done.stderr:
        said = f"{done.returncode} {done.stderr}"
        return f"{extra}: `holdfast {' '.join(command)}` does not name the extra: {said}"
    return None


def main(extras: list[str]) -> None:
    """Ask for each extra in a folder of its own, and end with all that was not told well."""
    known = {*ASK, *COMMANDS, *DONE_OTHERWISE}
    if unknown := {*extras} - known:
        sys.exit(f"nobody knows what these bring: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        opened(".holdfast")()
        Path("kept.db").touch()
        problems = list(filter(None, map(problem, extras or sorted(known))))
        os.chdir("/")
    if problems:
        sys.exit("\n".join(problems))
    print(f"{len(extras or known)} extras are not there, and whoever asks is told so")


if __name__ == "__main__":
    main(sys.argv[1:])
