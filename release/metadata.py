"""Whether the metadata of a wheel is complete, valid, and claims only what is true."""

from __future__ import annotations

from packaging.metadata import InvalidMetadata, Metadata, RawMetadata, parse_email

#: Versions of Python that the whole suite or `make test-dist` was run with.
TESTED_PYTHONS = ("3.11", "3.12", "3.13")
_PYTHON = "Programming Language :: Python :: 3."
_NEEDED = (
    "summary",
    "description",
    "description_content_type",
    "keywords",
    "license_expression",
    "requires_python",
)


def metadata_problems(data: bytes, version: str, known_classifiers: set[str]) -> list[str]:
    """Say what an index would refuse, what is missing, and what is claimed without having been tried."""
    raw, unknown = parse_email(data)
    problems = [f"the field {name} is unknown" for name in unknown]
    try:
        Metadata.from_raw(raw)
    except ExceptionGroup as invalid:
        problems += [_told(fault) for fault in invalid.exceptions]
    problems += [f"the field {name} is missing" for name in _NEEDED if not raw.get(name)]
    if raw.get("version") != version:
        problems.append(f"the version is {raw.get('version')}, the source says {version}")
    return problems + _classifier_problems(raw, known_classifiers)


def _told(fault: BaseException) -> str:
    return f"{fault.field}: {fault}" if isinstance(fault, InvalidMetadata) else str(fault)


def _classifier_problems(raw: RawMetadata, known: set[str]) -> list[str]:
    claimed = raw.get("classifiers", [])
    pythons = {
        name.removeprefix("Programming Language :: Python :: ")
        for name in claimed
        if name.startswith(_PYTHON)
    }
    return [
        *(f"the classifier {name!r} is unknown" for name in claimed if name not in known),
        *(f"Python {python} is claimed and was not tried" for python in sorted(pythons - {*TESTED_PYTHONS})),
        *(f"Python {python} was tried and is not claimed" for python in sorted({*TESTED_PYTHONS} - pythons)),
    ]
