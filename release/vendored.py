"""The scripts of others that the wheel carries, as VENDORED.json tells of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FOLDER = "holdfast/server/ui/vendor/"


@dataclass(frozen=True, slots=True)
class Script:
    """A file that was made of packages of others."""

    path: str
    sha256: str
    #: Name, version and licence of each.
    packages: tuple[tuple[str, str, str], ...]


def scripts_of(members: Mapping[str, bytes]) -> list[Script]:
    """Answer the scripts of a wheel.

    Raises:
        ValueError: one is not what is told of it, or nothing is told of it.
    """
    told: dict[str, Any] = json.loads(members[f"{FOLDER}VENDORED.json"])["files"]
    found = {name.removeprefix(FOLDER): data for name, data in members.items() if name.startswith(FOLDER)}
    scripts = {name for name in found if name.endswith(".js")}
    if scripts != {*told}:
        raise ValueError(f"VENDORED.json tells of {sorted(told)}, and there are {sorted(scripts)}")
    return [_script(name, told[name], found[name]) for name in sorted(scripts)]


def _script(name: str, told: dict[str, Any], data: bytes) -> Script:
    found = hashlib.sha256(data).hexdigest()
    if found != told["sha256"]:
        raise ValueError(f"{name} has the sum {found}, and VENDORED.json says {told['sha256']}")
    packages = tuple((each["name"], each["version"], each["licence"]) for each in told["packages"])
    return Script(FOLDER + name, found, packages)
