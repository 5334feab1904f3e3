"""What a wheel declares that it needs, by extra."""

from __future__ import annotations

from packaging.metadata import parse_email
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

#: Extras for those who work on Holdfast itself. Any other is for users, and is tried with and without.
FOR_DEVELOPERS = frozenset({"campaign", "dev", "docs", "framework-tests", "fuzz"})
_OWN = "holdfast"


def extras(metadata: bytes) -> list[str]:
    """Name the extras for people who use the package."""
    return sorted({*parse_email(metadata)[0].get("provides_extra", [])} - FOR_DEVELOPERS)


def needed(metadata: bytes, extra: str = "", *, python: str) -> list[Requirement]:
    """Answer what is needed directly with an extra, or without any: an extra of ours is what it needs itself.

    Args:
        metadata: of the wheel.
        extra: whose requirements, beside those that are always needed.
        python: version of the interpreter, two numbers.
    """
    found = dict[str, Requirement]()
    for line in parse_email(metadata)[0].get("requires_dist", []):
        requirement = Requirement(line)
        if not _applies(requirement, extra, python):
            continue
        if canonicalize_name(requirement.name) == _OWN:
            for other in requirement.extras:
                found |= {str(each): each for each in needed(metadata, other, python=python)}
        else:
            requirement.marker = None
            found[str(requirement)] = requirement
    return [found[name] for name in sorted(found)]


def _applies(requirement: Requirement, extra: str, python: str) -> bool:
    if requirement.marker is None:
        return True
    return requirement.marker.evaluate(
        {"extra": extra, "python_version": python, "python_full_version": f"{python}.0"}
    )


def lowest(requirement: Requirement) -> str | None:
    """Answer the lower bound of a requirement; None where it has none."""
    bounds = [each.version for each in requirement.specifier if each.operator in (">=", "==", "~=")]
    return bounds[0] if bounds else None
