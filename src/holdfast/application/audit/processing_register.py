"""The record of processing activities (GDPR, Art. 30), made from the store and from what its owner says.

Purposes, categories and recipients nobody can read out of bytes: they are said once, in the store's own file
`reports/register.json`, and the change is told in the trail. Time limits and measures are read off the store
as it is. What nobody said is shown as missing, never made up.

    {"controller": {"name": "Example GmbH", "contact": "privacy@example.com"},
     "activities": [{"name": "Offers", "purposes": ["to compare offers"], "subjects": ["suppliers"],
                     "data": ["contact data"], "recipients": ["purchasing"], "workflows": ["WF-*"]}]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from holdfast.application.audit.audit_style import STYLE
from holdfast.application.audit.markup import Child, Markup, element, page, table
from holdfast.application.trailing import Trail
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import ConfigError
from holdfast.domain.json_reading import read_json
from holdfast.ports import Store

REGISTER_FILE = "reports/register.json"

#: Persons and bodies that the register names, and what it says about each.
_PARTIES = ("controller", "representative", "protection_officer", "processor")
_PARTY_FIELDS = ("name", "contact")
#: What an activity is described by; those in the second row must be said, by law.
_ACTIVITY_FIELDS = (
    "name",
    "purposes",
    "legal_basis",
    "subjects",
    "data",
    "recipients",
    "transfers",
    "workflows",
)
_NEEDED_FIELDS = ("purposes", "subjects", "data", "recipients")
_UNCOVERED_MAX = 100


@dataclass(frozen=True, slots=True)
class Observed:
    """What the store itself tells.

    Attributes:
        workflows: names of all workflows.
        entries, sessions: how much the trail holds.
        first, last: when its first and last entry were made.
        settings: how the store is set up, by topic: retention, encryption, redaction, recording, holds.
    """

    workflows: tuple[str, ...]
    entries: int
    sessions: int
    first: str
    last: str
    settings: Mapping[str, Any]


def read_annotations(store: Store) -> dict[str, Any]:
    """Read what the owner said; nothing if nobody did.

    Raises:
        ConfigError: the file is no such description.
    """
    data = store.file(REGISTER_FILE)
    if data is None:
        return {}
    try:
        said = read_json(data)
    except ValueError:
        raise ConfigError("the file is not JSON", place=REGISTER_FILE) from None
    return check_annotations(said)


def write_annotations(store: Store, trail: Trail, said: Mapping[str, Any]) -> None:
    """Keep what the owner says, and tell so in the trail.

    Raises:
        ConfigError: it is no such description.
    """
    data = json.dumps(check_annotations(dict(said)), ensure_ascii=False, indent=2).encode() + b"\n"
    before = store.file(REGISTER_FILE)
    told = trail.told(AuditType.CONFIG_CHANGED, facts={"file": REGISTER_FILE})
    trail.commit(told, {REGISTER_FILE: data}, {REGISTER_FILE: before})


def check_annotations(said: Any) -> dict[str, Any]:
    """Answer a description if it is one.

    Raises:
        ConfigError: it is none; says where.
    """
    if not isinstance(said, dict):
        raise ConfigError("the description of the processing is no object", place=REGISTER_FILE)
    _check_names(said, (*_PARTIES, "activities"), "the register")
    for party in _PARTIES:
        if party in said:
            _check_party(said[party], party)
    activities = said.get("activities", [])
    if not isinstance(activities, list):
        raise _wrong("activities", "a list")
    for number, activity in enumerate(activities, 1):
        _check_activity(activity, f"activity {number}")
    return said


def _check_party(given: Any, party: str) -> None:
    if not isinstance(given, dict):
        raise _wrong(party, "an object with name and contact")
    _check_names(given, _PARTY_FIELDS, party)
    for name, text in given.items():
        if not isinstance(text, str):
            raise _wrong(f"{party}, {name}", "a text")


def _check_activity(given: Any, place: str) -> None:
    if not isinstance(given, dict) or not isinstance(given.get("name"), str):
        raise _wrong(place, "an object with a name")
    _check_names(given, _ACTIVITY_FIELDS, place)
    for name, value in given.items():
        is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
        if name not in ("name", "legal_basis") and not is_list:
            raise _wrong(f"{place}, {name}", "a list of texts")
        if name == "legal_basis" and not isinstance(value, str):
            raise _wrong(f"{place}, {name}", "a text")


def _check_names(given: Mapping[str, Any], known: Iterable[str], place: str) -> None:
    for name in given:
        if name not in known:
            raise ConfigError(
                f"{ascii(name)[:40]} is nothing that {place} has",
                place=REGISTER_FILE,
                hint=f"Known are: {', '.join(known)}.",
            )


def _wrong(what: str, wanted: str) -> ConfigError:
    return ConfigError(f"{what} is not {wanted}", place=REGISTER_FILE)


def make_register(said: Mapping[str, Any], observed: Observed) -> dict[str, Any]:
    """Make the register as a plain tree, everything missing named."""
    activities = [_activity(activity, observed) for activity in said.get("activities", [])]
    patterns = [pattern for activity in activities for pattern in activity["workflows"]]
    uncovered = [name for name in observed.workflows if not _is_covered(name, patterns)]
    return {
        "basis": "GDPR, Art. 30(1)",
        "parties": {party: said[party] for party in _PARTIES if party in said},
        "activities": activities,
        "time_limits": observed.settings.get("retention", {}),
        "measures": {name: value for name, value in observed.settings.items() if name != "retention"},
        "observed": {
            "workflows": len(observed.workflows),
            "sessions": observed.sessions,
            "trail_entries": observed.entries,
            "first_entry": observed.first,
            "last_entry": observed.last,
        },
        "workflows_without_activity": uncovered[:_UNCOVERED_MAX],
        "workflows_without_activity_count": len(uncovered),
        "missing": _missing(said, len(uncovered)),
    }


def _activity(said: Mapping[str, Any], observed: Observed) -> dict[str, Any]:
    patterns = list(said.get("workflows", []))
    covered = sum(_is_covered(name, patterns) for name in observed.workflows)
    return {**said, "workflows": patterns, "workflows_now": covered}


def _is_covered(workflow_id: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(workflow_id, pattern) for pattern in patterns)


def _missing(said: Mapping[str, Any], uncovered: int) -> list[str]:
    missing = [] if said.get("controller", {}).get("name") else ["name of the controller"]
    missing += [] if said.get("controller", {}).get("contact") else ["contact of the controller"]
    missing += [] if said.get("activities") else ["processing activities"]
    for activity in said.get("activities", []):
        missing += [f"{field} of {activity['name']}" for field in _NEEDED_FIELDS if not activity.get(field)]
    workflows = "1 workflow" if uncovered == 1 else f"{uncovered} workflows"
    return missing + ([f"an activity for {workflows}"] if uncovered else [])


def render_register(register: Mapping[str, Any]) -> str:
    """Make the register as a page to print."""
    title = "Record of processing activities"
    header = element(
        "header", element("h1", title), element("p", f"According to {register['basis']}"), class_="top"
    )
    sections = (
        _missing_section(register["missing"]),
        _section("Parties", _pairs("Parties", {_words(k): v for k, v in register["parties"].items()})),
        *(
            _section(activity["name"], _pairs(activity["name"], activity))
            for activity in register["activities"]
        ),
        _section("Time limits", _pairs("Time limits", register["time_limits"])),
        _section("Technical and organisational measures", _pairs("Measures", register["measures"])),
        _section("What the store holds", _pairs("What the store holds", register["observed"])),
    )
    return page(title, STYLE, element("main", header, sections))


def _missing_section(missing: list[str]) -> Markup:
    if not missing:
        return element("p", "Every field of the register is filled in.", class_="verdict ok")
    text = f"Not stated: {', '.join(missing)}. Say it with `holdfast audit register --set FILE`."
    return element("p", text, class_="verdict mind")


def _section(title: str, body: Child) -> Markup:
    return element("section", element("h2", title), body)


def _pairs(caption: str, values: Mapping[str, Any]) -> Markup:
    if not values:
        return element("p", "Not stated.", class_="soft")
    rows = (
        element("tr", element("th", _words(name), scope="row"), element("td", value_text(value)))
        for name, value in values.items()
    )
    return table(caption, ("What", "Stated"), element("tbody", rows), look="pairs")


def value_text(value: Any) -> str:
    """Write a value of a setting for people."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "; ".join(f"{_words(name).lower()}: {value_text(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(value_text, value)) or "none"
    return str(value)


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()
