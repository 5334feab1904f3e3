"""The range of versions of a framework that a translation was tested with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from holdfast.domain.errors import ConfigError

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


@contextmanager
def framework(package: str, at_least: str, below: str, *, extra: str) -> Iterator[None]:
    """Import a framework inside of this, so that a version that was not tested is told by its range.

    Args:
        package: what is installed, by its name in the index.
        at_least: the oldest version that was tested.
        below: the first version that was not.
        extra: what of ours installs it.

    Raises:
        ConfigError: it is not installed, is another version, or lacks something that was imported.
    """
    found = _installed(package)
    wanted = f"{package} at least {at_least} and below {below}"
    if found is None:
        raise _unfit(f"{wanted} is not installed", extra)
    if not _numbers(at_least) <= _numbers(found) < _numbers(below):
        raise _unfit(f"{wanted} is needed, {found} is installed", extra)
    try:
        yield
    except ImportError as missing:
        raise _unfit(f"{package} {found} cannot be used: {missing}", extra) from missing


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _numbers(text: str) -> tuple[int, ...]:
    """Read the numbers that a version begins with: what is said of a pre-release is left out."""
    found = _NUMBERS.match(text)
    return tuple(int(number) for number in found[0].split(".")) if found else ()


def _unfit(problem: str, extra: str) -> ConfigError:
    return ConfigError(problem, place=f"integration {extra}", hint=f"Run `pip install 'holdfast[{extra}]'`.")
