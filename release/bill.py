"""A bill of materials in CycloneDX 1.6, the same bytes for the same packages."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any
from urllib.parse import quote

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.licences import licence_of
from release.vendored import Script

OWN = "holdfast"
#: Serial numbers are made of what is told, in this space.
_SPACE = uuid.UUID("7f0c2b1e-0a1d-5a3c-9d3e-6b2f4c8e1a90")


@dataclass(frozen=True, slots=True)
class Wheel:
    """What is known of the wheel itself; `epoch` is the second it is dated with."""

    version: str
    sha256: str
    epoch: int
    scripts: list[Script]


@dataclass(frozen=True, slots=True)
class Package:
    """An installed package, and the names of those it needs here."""

    name: str
    version: str
    licence: str | None
    needs: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"pkg:pypi/{self.name}@{quote(self.version)}"


def packages_in(folder: Path, extra: str, *, python: str) -> list[Package]:
    """Answer what is installed beside us, each with what it needs there, in the order of their names."""
    found = {canonicalize_name(each.metadata["Name"]): each for each in distributions(path=[str(folder)])}
    asked = _asked_extras(found, extra, python)
    return [
        Package(
            name, each.version, licence_of(each), sorted(_needs(each, asked[name], python) & found.keys())
        )
        for name, each in sorted(found.items())
    ]


def _asked_extras(found: dict[Any, Distribution], extra: str, python: str) -> dict[str, set[str]]:
    """Follow who needs whom with which extras, from us on."""
    asked: dict[str, set[str]] = {name: set() for name in found}
    left = [(OWN, extra)]
    while left:
        name, wanted = left.pop()
        if name not in found or wanted in asked[name]:
            continue
        asked[name].add(wanted)
        for requirement in _requirements(found[name], {wanted}, python):
            left += [(canonicalize_name(requirement.name), each) for each in ("", *requirement.extras)]
    return asked


def _needs(distribution: Distribution, extras: set[str], python: str) -> set[str]:
    needed: set[str] = {canonicalize_name(each.name) for each in _requirements(distribution, extras, python)}
    return needed - {canonicalize_name(distribution.metadata["Name"])}


def _requirements(distribution: Distribution, extras: set[str], python: str) -> list[Requirement]:
    requirements = [Requirement(line) for line in distribution.requires or ()]
    return [each for each in requirements if any(_applies(each, extra, python) for extra in extras)]


def _applies(requirement: Requirement, extra: str, python: str) -> bool:
    marker = requirement.marker
    return marker is None or marker.evaluate({"extra": extra, "python_version": python})


def bill(wheel: Wheel, extra: str, packages: list[Package]) -> dict[str, Any]:
    """Make the bill of the wheel with an extra, or without any."""
    others = [each for each in packages if each.name != OWN]
    (own,) = (each for each in packages if each.name == OWN)
    urls = {each.name: each.url for each in packages}
    parts = [_script(script) for script in wheel.scripts]
    told: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(wheel.epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": _component(own) | {"hashes": _sums(wheel.sha256)},
            "properties": [{"name": "holdfast:extra", "value": extra or "none"}],
        },
        "components": [*map(_component, others), *parts],
        "dependencies": [
            {
                "ref": own.url,
                "dependsOn": sorted([urls[n] for n in own.needs] + [p["bom-ref"] for p in parts]),
            },
            *({"ref": each.url, "dependsOn": [urls[name] for name in each.needs]} for each in others),
        ],
    }
    serial = uuid.uuid5(_SPACE, json.dumps(told, sort_keys=True))
    return told | {"serialNumber": f"urn:uuid:{serial}"}


def _component(package: Package) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": package.url,
        "name": package.name,
        "version": package.version,
        "purl": package.url,
        "licenses": [{"expression": package.licence}] if package.licence else [],
    }


def _script(script: Script) -> dict[str, Any]:
    packages = [
        {
            "type": "library",
            "bom-ref": (url := f"pkg:npm/{quote(name, safe='/')}@{quote(version)}"),
            "name": name,
            "version": version,
            "purl": url,
            "licenses": [{"expression": licence}],
        }
        for name, version, licence in script.packages
    ]
    return {
        "type": "file",
        "bom-ref": script.path,
        "name": script.path,
        "hashes": _sums(script.sha256),
        "components": packages,
    }


def _sums(sha256: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": sha256}]
