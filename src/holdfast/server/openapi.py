"""The description of the API (OpenAPI 3.1), made from the same values that route and check the requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdfast import __version__
from holdfast.server.operation import JSON, Operation
from holdfast.server.problems import MEDIA_TYPE, Problem
from holdfast.server.routing import PREFIX

_SHARED: Mapping[int, str] = {
    400: "The request is not as described.",
    401: "Nobody who is known here.",
    403: "Not allowed for whoever asks.",
    429: "Too many requests.",
    503: "The store cannot be reached, or the answer took too long.",
}
_WITH_BODY: Mapping[int, str] = {
    413: "The request is too large.",
    415: "The body is no JSON.",
    422: "The body is not as described.",
}
_ACTING: Mapping[int, str] = {409: "It cannot be done as things are, or the key is in use."}
_REF = "#/components/schemas/{name}"


def describe(operations: Sequence[Operation]) -> dict[str, Any]:
    """Describe operations."""
    kinds = {id(kind): kind for one in operations for kind in (one.body, one.result) if kind is not None}
    schemas, components = msgspec.json.schema_components([Problem, *kinds.values()], ref_template=_REF)
    by_kind = dict(zip([id(Problem), *kinds], schemas, strict=True))
    described: dict[str, dict[str, Any]] = {}
    for one in operations:
        described.setdefault(PREFIX + one.path, {})[one.method.lower()] = _operation(one, by_kind)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast",
            "version": __version__,
            "summary": "Checkpoints, events and the trail of one store.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "paths": described,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(one: Operation, by_kind: Mapping[int, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.summary,
        "tags": [one.tag],
        "parameters": _parameters(one),
        "responses": _responses(one, by_kind),
    }
    if one.scope is None:
        told["security"] = []
    else:
        told["description"] = f"Needs the scope `{one.scope}`."
    if one.body is not None:
        is_needed = any(field.required for field in msgspec.structs.fields(one.body))
        told["requestBody"] = {"required": is_needed, "content": {JSON: {"schema": by_kind[id(one.body)]}}}
    return told


def _parameters(one: Operation) -> list[dict[str, Any]]:
    names = [step[1:-1] for step in one.path.split("/") if step.startswith("{")]
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in names
    ]
    if one.query is not None:
        found += _query_parameters(one.query)
    if one.acts:
        found.append(_header("Idempotency-Key", "The same key: done once.", {"maxLength": 255}))
    if one.needs_version:
        found.append(_header("If-Match", "The ETag of what is to be changed.", {}))
    if one.is_stream:
        digits = {"minLength": 0, "maxLength": 15, "pattern": "^[0-9]*$"}
        found.append({**_header("Last-Event-ID", "Go on after this event.", digits), "required": False})
    if one.has_ranges:
        # Whatever is written there: what is no range is left aside.
        text, part = (
            {"type": "string"},
            "One range of bytes, as bytes=0-99; the whole where it is no such range.",
        )
        found += [
            {"name": "Range", "in": "header", "required": False, "description": part, "schema": text},
            {
                "name": "If-Range",
                "in": "header",
                "required": False,
                "description": "The ETag of the whole that is gone on with; another: the whole as it is now.",
                "schema": text,
            },
        ]
    return found


def _header(name: str, told: str, limits: Mapping[str, Any]) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "pattern": "^[!-~]+$", **limits}
    return {"name": name, "in": "header", "required": True, "description": told, "schema": schema}


def _query_parameters(kind: type[Any]) -> list[dict[str, Any]]:
    _, components = msgspec.json.schema_components([kind], ref_template=_REF)
    fields = components[kind.__name__]
    return [
        {
            "name": name,
            "in": "query",
            "required": name in fields.get("required", ()),
            "schema": _inlined(one, components),
        }
        for name, one in fields["properties"].items()
    ]


def _inlined(schema: Any, components: Mapping[str, Any]) -> Any:
    """Put enumerations where they are used; a parameter that is left out is no null."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            return components[schema["$ref"].rpartition("/")[2]]
        if "anyOf" in schema:
            rest = [one for one in schema["anyOf"] if one != {"type": "null"}]
            if len(rest) == 1:
                return _inlined(rest[0], components)
        return {name: _inlined(one, components) for name, one in schema.items() if name != "default"}
    return schema


def _responses(one: Operation, by_kind: Mapping[int, Any]) -> dict[str, Any]:
    problems = dict(_SHARED) if one.scope is not None else {400: _SHARED[400], 503: _SHARED[503]}
    if one.body is not None:
        problems |= _WITH_BODY
    if one.acts:
        problems |= _ACTING
    problems |= one.problems
    content = {MEDIA_TYPE: {"schema": by_kind[id(Problem)]}}
    told: dict[str, Any] = {
        str(status): {"description": said, "content": content} if status >= 400 else {"description": said}
        for status, said in sorted(problems.items())
    }
    return {str(one.status): _success(one, by_kind), **told}


def _success(one: Operation, by_kind: Mapping[int, Any]) -> dict[str, Any]:
    content = {} if one.result is None else {JSON: {"schema": by_kind[id(one.result)]}}
    content |= {media_type: {"schema": {}} for media_type in one.also}
    told: dict[str, Any] = {"description": one.summary}
    return {**told, "content": content} if content else told
