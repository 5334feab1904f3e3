"""Requests: whatever is sent over HTTP or by an MCP client, to the whole application over a real store."""

from __future__ import annotations

import asyncio
import atexit
import json
from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec
from mcp.server.fastmcp.exceptions import ToolError
from starlette.testclient import TestClient

from holdfast.config import Config
from holdfast.domain.json_patch import EditError, patched
from holdfast.integrations.mcp_desk import DeskSettings, Scope, open_desk
from holdfast.integrations.mcp_server import HoldfastServer, build_server
from holdfast.server import desk as http_desk
from holdfast.server.app import build
from holdfast.server.json_patch import Edit, steps
from holdfast.server.settings import Settings
from holdfast.server.table import OPERATIONS
from tests.fuzz import real_store
from tests.fuzz.target import Target, ViolationError

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
#: Streams go on for as long as both sides live.
_ASKED = [operation for operation in OPERATIONS if not operation.is_stream and operation.name != "shutdown"]


@cache
def _client() -> tuple[TestClient, str]:
    folder = real_store.folder()
    real_store.fill(f"file:{folder}/store")
    desk = http_desk.open_desk(Config.load({"store": f"file:{folder}/store"}, env={}), Settings(rate=10**9))
    atexit.register(desk.close)
    return TestClient(build(desk), base_url="http://127.0.0.1:8787"), desk.service.tokens.create(
        "t", ("admin",)
    )[1]


def _http(data: bytes) -> None:
    """Send a request: which operation, its path and query, one header, its body, a line each."""
    client, token = _client()
    number, path, name, value, body = (data + b"\n" * 4).split(b"\n", 4)
    operation = _ASKED[(number[0] if number else 0) % len(_ASKED)]
    where = "/v1" + operation.path.partition("{")[0].rstrip("/") + _url(path)
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Idempotency-Key": "k" + value.hex()[:20],
        **({name.decode("ascii"): value.decode("latin-1")} if _is_header(name, value) else {}),
    }
    answer = client.request(operation.method, where, headers=headers, content=body, follow_redirects=False)
    if answer.status_code >= 500 and answer.status_code not in (501, 503):
        raise ViolationError(f"{operation.name} answered {answer.status_code}: {answer.text[:200]}")


def _url(path: bytes) -> str:
    """Write bytes as the rest of a URL that a client may send: what is no letter there is escaped."""
    allowed = b"/?&=%-_.~:@,"
    return "".join(
        chr(one) if (chr(one).isalnum() and one < 128) or one in allowed else f"%{one:02X}" for one in path
    )


def _is_header(name: bytes, value: bytes) -> bool:
    letters = name.replace(b"-", b"")
    return (
        letters.isalnum()
        and name.isascii()
        and all(31 < one < 127 for one in value)
        and name.lower()
        not in (
            b"host",
            b"content-length",
            b"transfer-encoding",
            b"connection",
            b"authorization",
            b"content-type",
        )
    )


def _http_seeds() -> Iterable[bytes]:
    paths = {"GET": b"/WF-1?limit=2", "POST": b"/WF-1/fork"}
    bodies = (b'{"reason":"test"}', b'{"reason":"r","at":"WF-1@1","new_workflow_id":"n"}', b"[]", b"")
    for at, operation in enumerate(_ASKED):
        if at in (0x0A,):
            continue
        yield (
            bytes([at])
            + b"\n"
            + paths.get(operation.method, b"/WF-1@1")
            + b"\nIf-Match\n*\n"
            + bodies[at % 4]
        )
    yield b"\x01\n/WF-1?cursor=abc&limit=0\nLast-Event-ID\n12\n"


def _edits(data: bytes) -> None:
    try:
        edits = msgspec.json.decode(data, type=list[Edit])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return
    patched({"a": [1, {"b": 2}]}, steps(edits))


@cache
def _server() -> HoldfastServer:
    folder = real_store.folder()
    real_store.fill(f"file:{folder}/store")
    config = Config.load({"store": f"file:{folder}/store", "actor": "ann"}, env={})
    desk = open_desk(config, DeskSettings(frozenset(Scope)))
    atexit.register(desk.close)
    return build_server(desk, frozenset(Scope))


def _mcp(data: bytes) -> None:
    """Call a tool: its name on the first line, its arguments as JSON below."""
    name, _, rest = data.partition(b"\n")
    try:
        arguments: Any = json.loads(rest)
    except (ValueError, RecursionError):
        return
    if isinstance(arguments, dict):
        asyncio.run(_server().call_tool(name.decode("latin-1"), arguments))


def _mcp_seeds() -> Iterable[bytes]:
    calls = {
        "list_workflows": {"limit": 5},
        "list_checkpoints": {"workflow_id": "WF-1", "limit": 1},
        "show_checkpoint": {"checkpoint": "WF-1@1", "pointer": "/context/set"},
        "diff_checkpoints": {"a": "WF-1@1", "b": "WF-1@2"},
        "read_events": {"workflow_id": "WF-1", "after": 1},
        "read_trail": {"workflow_id": "WF-1"},
        "validate_checkpoint": {"checkpoint": "WF-1@latest"},
        "record_decision": {"workflow_id": "WF-1", "description": "d", "reason": "r", "confidence": 0.5},
        "save_checkpoint": {"workflow_id": "WF-3", "state": {"a": 1}, "reason": "r"},
        "fork_workflow": {"checkpoint": "WF-1@1", "new_workflow_id": "n", "reason": "r"},
    }
    return [name.encode() + b"\n" + json.dumps(arguments).encode() for name, arguments in calls.items()]


TARGETS = (
    Target("http_request", _http, _http_seeds),
    Target("http_patch", _edits, lambda: [b'[{"op":"add","path":"/a/-","value":1}]'], (EditError,)),
    Target("mcp_call", _mcp, _mcp_seeds, (ToolError,)),
)
