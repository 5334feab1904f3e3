"""The published JSON Schemas: every file that Holdfast writes follows its own, and no field is left out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from holdfast.ports import Store
from tests.application.versions import KINDS, Home
from tests.schema_stores import make_everything

SCHEMAS = files("holdfast") / "schemas"
INDEX = json.loads((SCHEMAS / "index.json").read_text(encoding="utf-8"))
NAMES = sorted({entry["schema"] for entry in INDEX["schemas"]})
#: What lies where in the folder that is filled for these tests.
PLACES = {
    "plain": ("store",),
    "copy": ("store",),
    "performance": ("store",),
    "compliance": ("store",),
    "large": ("store",),
    "sealed": ("encrypted store", "store"),
    "export": ("export",),
    "session": ("export",),
    "subject": ("subject export",),
    "shared": ("subject export",),
    "pack": ("evidence pack",),
    "report": ("report",),
}


@dataclass(frozen=True)
class Piece:
    """One JSON value that was found in a file."""

    place: str
    schema: str
    value: Any


def load(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    return loaded


def strict(node: Any) -> Any:
    """Refuse every field that a schema does not name: readers may meet more, but we write no others."""
    if isinstance(node, list):
        return [strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    answer = {name: strict(value) for name, value in node.items()}
    if node.get("type") == "object" and "properties" in node:
        answer.setdefault("additionalProperties", False)
    return answer


def pattern(glob: str) -> re.Pattern[str]:
    words = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    return re.compile("".join(words.get(part, re.escape(part)) for part in parts))


def matching(path: str, kinds: tuple[str, ...], entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Find what a file is by its path; what is said of the narrower kind of place goes first."""
    for kind in kinds:
        found = [
            entry
            for entry in entries
            if entry["in"] == kind and any(pattern(glob).fullmatch(path) for glob in entry["files"])
        ]
        if found:
            return found
    return []


def values_in(data: bytes, form: str) -> Iterator[Any]:
    """Take the JSON values out of a file of a form."""
    if form == "json":
        yield json.loads(data)
    elif form == "jsonl":
        yield from map(json.loads, data.splitlines())
    elif form == "head":
        yield json.loads(data.partition(b"\n")[0])
    elif form == "records":
        yield from records_in(data)
    else:
        yield from (heading if form == "slots" else content for heading, content in slots_in(data))


def records_in(data: bytes) -> Iterator[Any]:
    while data:
        line, _, data = data.partition(b"\n")
        record = json.loads(line)
        yield record
        payload = record.get("payload")
        if payload and "blob" not in payload:
            data = data[payload["len"] + 1 :]


def slots_in(data: bytes) -> Iterator[tuple[Any, Any]]:
    while data:
        heading = json.loads(data.partition(b"\n")[0])
        slot, data = data[: heading["slot"]], data[heading["slot"] :]
        # The heading is padded so that the payload ends with the slot.
        yield heading, json.loads(slot[-heading["len"] :]) if "len" in heading else None


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("schemas")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        patch.delenv("HOLDFAST_STORE", raising=False)
        (folder / "all").mkdir()
        make_everything(folder / "all")
    return folder / "all"


@pytest.fixture(scope="module")
def written(everything: Path) -> list[tuple[str, list[Piece]]]:
    """Give every file with its JSON values; one that nobody knows has a piece without a schema."""
    found = []
    for path in sorted(path for path in everything.rglob("*") if path.is_file()):
        place, _, inside = path.relative_to(everything).as_posix().partition("/")
        found.append((f"{place}/{inside}", list(pieces_of(path, PLACES[place], inside))))
    return found


def pieces_of(path: Path, kinds: tuple[str, ...], inside: str) -> Iterator[Piece]:
    entries = matching(inside, kinds, INDEX["schemas"])
    if not entries and not matching(inside, kinds, INDEX["not_json"]):
        yield Piece(str(path), "", None)
    for entry in entries:
        for value in values_in(path.read_bytes(), entry["form"]):
            if value is not None:
                yield Piece(f"{inside} of {kinds[-1]}", entry["schema"], value)


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_one_and_stands_by_itself(name: str) -> None:
    schema = load(name)
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:holdfast:schema:{name.removesuffix('.schema.json')}:1"
    assert schema["title"] and schema["description"]
    references = set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(schema)))
    assert references == {f"#/$defs/{name}" for name in schema.get("$defs", {})}


def test_the_index_names_every_schema_and_no_other() -> None:
    there = {entry.name for entry in SCHEMAS.iterdir() if entry.name.endswith(".schema.json")}
    assert there == set(NAMES)


def test_every_file_that_is_written_is_in_the_index(written: list[tuple[str, list[Piece]]]) -> None:
    assert [path for path, pieces in written if any(not piece.schema for piece in pieces)] == []


def test_everything_written_follows_its_schema_and_no_field_is_left_out(
    written: list[tuple[str, list[Piece]]],
) -> None:
    validators = {name: Draft202012Validator(strict(load(name))) for name in NAMES}
    problems = []
    for _, pieces in written:
        for piece in pieces:
            for error in validators[piece.schema].iter_errors(piece.value):
                problems.append(f"{piece.place} ({piece.schema}), {error.json_path}: {error.message[:200]}")
    assert not problems, "\n".join(problems[:20])


def test_every_schema_is_met_in_what_is_written(written: list[tuple[str, list[Piece]]]) -> None:
    assert {piece.schema for _, pieces in written for piece in pieces} == set(NAMES)


def test_what_lacks_a_field_or_has_it_of_another_kind_is_refused(
    written: list[tuple[str, list[Piece]]],
) -> None:
    """Each schema is held against its own example, with one field taken away or turned into another."""
    examples = {piece.schema: piece.value for _, pieces in written for piece in pieces}
    for name, value in examples.items():
        schema = load(name)
        validator = Draft202012Validator(schema)
        for field in schema.get("required", ()):
            without = {key: item for key, item in value.items() if key != field}
            assert not validator.is_valid(without), f"{name} without {field}"
            assert not validator.is_valid({**value, field: [[["odd"]]]}), f"{name} with an odd {field}"


def test_a_reader_may_meet_fields_that_it_does_not_know(written: list[tuple[str, list[Piece]]]) -> None:
    """What a later version adds does not make a file invalid."""
    examples = {piece.schema: piece.value for _, pieces in written for piece in pieces}
    for name in ("keyframe.schema.json", "record.schema.json", "event.schema.json", "session.schema.json"):
        assert Draft202012Validator(load(name)).is_valid({**examples[name], "novel": {"a": 1}})


def test_the_page_lists_what_the_index_does() -> None:
    page = (Path(__file__).parents[1] / "docs" / "schemas.md").read_text(encoding="utf-8")
    for entry in INDEX["schemas"]:
        globs = ", ".join(f"`{glob}`" for glob in entry["files"])
        assert f"schemas/{entry['schema']})" in page
        assert f"| {entry['in']} | {globs} | {entry['form']} |" in page


@pytest.mark.parametrize("kind", KINDS)
def test_every_store_keeps_the_same_shapes(kind: str, tmp_path: Path) -> None:
    """A database has no files to look at, but gives the same bytes."""
    with Home(kind, tmp_path).open("1.1.0") as service:
        for number in range(40):
            service.create_checkpoint("W", {"steps": ["ask"], "n": number, "pad": str(number) * 300})
        service.record_decision("W", "ask two", confidence=0.9)
        service.holds.place(workflow_id="W", reason="case 7")
        service.sessions.open_session("s-2", agent="planner")
        service.quarantine.put("W", 3, "for a test")
        service.requests.put("W", "pause", reason="for a test", data={"until": "noon"})
        service.flush()
        problems = list(problems_in(service._engine.kit.store, is_sealed=kind == "sealed"))
    assert not problems, "\n".join(problems[:20])


def problems_in(store: Store, *, is_sealed: bool) -> Iterator[str]:
    validators = {name: Draft202012Validator(strict(load(name))) for name in NAMES}
    kinds = ("encrypted store", "store") if is_sealed else ("store",)
    last = store.head("W").sequence
    found = [("record.schema.json", data, "records") for data in store.records("W", 1, last)]
    found += [("event.schema.json", line, "jsonl") for line in store.events("W")]
    found += [("audit-entry.schema.json", line, "jsonl") for line in store.leaves()]
    for entry in store.keyframes("W"):
        data = store.keyframe("W", entry.sequence)
        is_readable = entry.suffix == "json"
        name = "keyframe.schema.json" if is_readable else "keyframe-heading.schema.json"
        found.append((name, data, "json" if is_readable else "head"))
    for name in store.files(""):
        data = store.file(name) or b""
        found += [(one["schema"], data, one["form"]) for one in matching(name, kinds, INDEX["schemas"])]
    assert {"hold.schema.json", "quarantine.schema.json"} <= {schema for schema, _, _ in found}
    for schema, data, form in found:
        for value in values_in(data, form):
            for error in validators[schema].iter_errors(value):
                yield f"{schema}, {error.json_path}: {error.message[:200]}"
