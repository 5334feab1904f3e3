"""Which licence a package has, by SPDX, and whether it may stand under what is Apache-2.0."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PackageMetadata
from pathlib import Path

READ_BY_HAND = tomllib.loads(Path(__file__).with_name("licences.toml").read_text("utf-8"))
#: They ask for notices at most.
PERMISSIVE = frozenset(READ_BY_HAND["permissive"])
#: They ask something of whoever changes the package itself. Extras may need such, the core may not.
WEAK = frozenset(READ_BY_HAND["weak"])
_CLASSIFIER = "License :: OSI Approved :: "
_TOKEN = re.compile(r"\(|\)|[\w.+-]+(?: WITH [\w.-]+)?")


def licence_of(distribution: Distribution) -> str | None:
    """Answer the SPDX expression of an installed package; None if nobody can tell."""
    metadata = distribution.metadata
    name = metadata["Name"].lower()
    if name in READ_BY_HAND["packages"]:
        return str(READ_BY_HAND["packages"][name])
    return _first(metadata, "License-Expression") or _of_classifiers(metadata) or _of_words(metadata)


def _first(metadata: PackageMetadata, field: str) -> str | None:
    return next(iter(metadata.get_all(field) or ()), None)


def _of_classifiers(metadata: PackageMetadata) -> str | None:
    named = [line.removeprefix(_CLASSIFIER) for line in metadata.get_all("Classifier") or ()]
    known = sorted(
        {READ_BY_HAND["classifiers"][name] for name in named if name in READ_BY_HAND["classifiers"]}
    )
    # Who names several usually means a choice, but does not say so: all of them must do.
    return " AND ".join(known) or None


def _of_words(metadata: PackageMetadata) -> str | None:
    words = (_first(metadata, "License") or "").strip()
    found = READ_BY_HAND["words"].get(words)
    return str(found) if found else None


def licence_problem(name: str, licence: str | None, *, is_core: bool) -> str | None:
    """Say why a package may not be needed by us, if so."""
    if licence is None:
        return f"{name}: nobody can tell its licence; read it and enter it into release/licences.toml"
    if _allows(licence, PERMISSIVE if is_core else PERMISSIVE | WEAK):
        return None
    return f"{name}: {licence} does not go with Apache-2.0{' in the core' if is_core else ''}"


def _allows(expression: str, allowed: frozenset[str]) -> bool:
    tokens = iter([*_TOKEN.findall(expression), ")"])
    return _either(tokens, allowed)


def _either(tokens: Iterator[str], allowed: frozenset[str]) -> bool:
    """Judge up to the closing bracket: AND binds closer than OR."""
    choices = [True]
    for token in tokens:
        if token == ")":
            break
        if token == "OR":
            choices.append(True)
        elif token != "AND":
            choices[-1] &= _either(tokens, allowed) if token == "(" else token in allowed
    return any(choices)


def counted(licences: Mapping[str, str]) -> str:
    """Tell how many packages have which licence."""
    by_licence: dict[str, int] = {}
    for licence in licences.values():
        by_licence[licence] = by_licence.get(licence, 0) + 1
    return ", ".join(f"{count} {licence}" for licence, count in sorted(by_licence.items()))
