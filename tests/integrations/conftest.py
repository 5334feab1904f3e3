"""Which tests are run here: each framework has an environment of its own, because their pins conflict.

`make test` has LangGraph and MCP; `make test-frameworks` builds the others' environments and runs
`pytest tests/integrations --framework=NAME` in each.
"""

from __future__ import annotations

from pathlib import Path

import pytest

#: By the beginning of the names of the files that test them.
FRAMEWORKS = (
    "agent_framework",
    "burr",
    "crewai",
    "google_adk",
    "haystack",
    "llama_index",
    "openai_agents",
    "pydantic_ai",
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what needs a framework that is not asked for, and what does not where one is."""
    if collection_path.is_dir():
        return None
    chosen = config.getoption("--framework")
    name = collection_path.name.removeprefix("test_")
    needed = next((framework for framework in FRAMEWORKS if name.startswith(framework)), None)
    return True if needed != chosen else None
