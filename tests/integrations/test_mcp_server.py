"""The server as agents meet it: called by the official client, in this process and over stdio."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.memory import create_connected_server_and_client_session
from mcp.types import LATEST_PROTOCOL_VERSION, CallToolResult, Implementation, TextContent

import holdfast
from holdfast.config import Config
from holdfast.integrations.mcp_desk import DeskSettings, Scope, open_desk
from holdfast.integrations.mcp_server import build_server
from tests.cli.running import environment
from tests.integrations.pages import run_sample, sample

READS = {
    "list_workflows",
    "list_checkpoints",
    "show_checkpoint",
    "diff_checkpoints",
    "read_events",
    "read_trail",
}
VERIFIES = {"validate_checkpoint", "verify_trail"}
WRITES = {"save_checkpoint", "record_decision", "restore_checkpoint", "fork_workflow"}
CLIENT = Implementation(name="tester", version="1")

Talk = Callable[[ClientSession], Awaitable[None]]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with holdfast.open(str(tmp_path / "store")) as service:
        service.create_checkpoint("a-1", {"i": 1})
    return tmp_path / "store"


def talk_in_process(store: Path, talk: Talk, scopes: frozenset[Scope] = frozenset(Scope)) -> None:
    async def main() -> None:
        server = build_server(desk, scopes)
        async with create_connected_server_and_client_session(
            server._mcp_server, client_info=CLIENT
        ) as session:
            await talk(session)

    desk = open_desk(Config.load({"store": str(store), "actor": "ann"}), DeskSettings(scopes))
    try:
        asyncio.run(main())
    finally:
        desk.close()


@asynccontextmanager
async def spoken_to(store: Path, *args: str) -> AsyncIterator[ClientSession]:
    """Talk to `holdfast mcp` in a process of its own."""
    words = ["-m", "holdfast", "mcp", "--store", str(store), "--actor", "ann", *args]
    child = StdioServerParameters(command=sys.executable, args=words, env=environment(store.parent))
    async with (
        stdio_client(child) as (reading, writing),
        ClientSession(reading, writing, client_info=CLIENT) as session,
    ):
        await session.initialize()
        yield session


def told(result: CallToolResult) -> Any:
    """Answer what a tool did, which it says as text and as data alike."""
    [content] = result.content
    assert isinstance(content, TextContent) and not result.isError, result
    assert json.loads(content.text) == result.structuredContent
    return result.structuredContent


def problem(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent) and result.isError
    assert "Traceback" not in content.text and 'File "' not in content.text
    return content.text


async def names(session: ClientSession) -> set[str]:
    return {tool.name for tool in (await session.list_tools()).tools}


@pytest.mark.parametrize(
    ("scopes", "offered"),
    [
        ({Scope.READ, Scope.VERIFY}, READS | VERIFIES),
        ({Scope.READ}, READS),
        ({Scope.VERIFY}, VERIFIES),
        (set(Scope), READS | VERIFIES | WRITES),
    ],
)
def test_the_tools_are_those_of_the_scopes(store: Path, scopes: set[Scope], offered: set[str]) -> None:
    async def talk(session: ClientSession) -> None:
        assert await names(session) == offered
        for tool in (await session.list_tools()).tools:
            assert tool.annotations is not None
            assert tool.annotations.readOnlyHint is (tool.name not in WRITES)
            assert tool.description and "limit" not in tool.inputSchema.get("required", [])

    talk_in_process(store, talk, frozenset(scopes))


def test_every_tool_does_what_it_says(store: Path) -> None:
    async def talk(session: ClientSession) -> None:
        async def call(name: str, **arguments: Any) -> Any:
            return told(await session.call_tool(name, arguments))

        made = await call(
            "save_checkpoint", workflow_id="a-1", state={"i": 2}, reason="on", expected_sequence=1
        )
        assert made["checkpoint"] == "a-1@2" and made["durable"]
        assert (await call("list_workflows"))["total"] == 1
        assert (await call("list_checkpoints", workflow_id="a-1"))["total"] == 2
        assert (await call("show_checkpoint", checkpoint="a-1", pointer="/context"))["state"] == {"i": 2}
        [change] = (await call("diff_checkpoints", a="a-1@1", b="a-1@2"))["changes"]
        assert change["change"] == "set context.i = 2"
        assert await call("record_decision", workflow_id="a-1", description="stop", reason="enough")
        assert (await call("read_events", workflow_id="a-1", after=2))["events"][0][
            "type"
        ] == "DECISION_RECORDED"
        back = await call("restore_checkpoint", workflow_id="a-1", checkpoint="a-1@1", reason="wrong")
        assert back["checkpoint"] == "a-1@3"
        assert await call("fork_workflow", checkpoint="a-1@2", new_workflow_id="a-2", reason="try")
        assert (await call("validate_checkpoint", checkpoint="a-2"))["valid"]
        assert (await call("verify_trail"))["valid"]
        entries = (await call("read_trail", workflow_id="a-1"))["entries"]
        reasons = [one["data"]["reason"] for one in entries if one["type"] == "REQUEST_MADE"]
        assert reasons == ["wrong", "enough", "on"]
        assert {(one["actor"], one["agent"]) for one in entries if one["type"] == "REQUEST_MADE"} == {
            ("ann", "tester")
        }

    talk_in_process(store, talk)


def test_what_goes_wrong_is_told_by_its_code(store: Path) -> None:
    async def talk(session: ClientSession) -> None:
        async def failed(name: str, **arguments: Any) -> str:
            return problem(await session.call_tool(name, arguments))

        text = await failed("show_checkpoint", checkpoint="a-1@9")
        assert text.startswith("checkpoint_not_found: there is no such checkpoint: a-1@9.")
        text = await failed("show_checkpoint", checkpoint=7)
        assert text == "wrong_usage: checkpoint: Input should be a valid string"
        assert (await failed("show_checkpoint")).startswith("wrong_usage: checkpoint: Field required")
        assert (await failed("erase")).startswith("wrong_usage: Unknown tool")
        assert (await failed("save_checkpoint", workflow_id="a-1", state={}, reason="x")).startswith(
            "permission_denied: save_checkpoint is not offered"
        )

    talk_in_process(store, talk, frozenset({Scope.READ}))


def test_a_defect_is_told_without_its_particulars(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: Any) -> Any:
        raise RuntimeError("with a secret in it")

    async def talk(session: ClientSession) -> None:
        text = problem(await session.call_tool("list_workflows", {}))
        assert text == "unexpected: RuntimeError; this is a defect of Holdfast"

    monkeypatch.setattr("holdfast.integrations.mcp_desk.Desk.workflows", broken)
    talk_in_process(store, talk)


def test_an_agent_in_another_process_saves_and_another_server_goes_on(store: Path) -> None:
    async def main() -> None:
        async with spoken_to(store, "--write", "--prefix", "a-") as session:
            assert await names(session) == READS | VERIFIES | WRITES
            asked = {"workflow_id": "a-7", "state": {"text": "caf\u00e9 \u2603 \x00"}, "reason": "to go on"}
            assert told(await session.call_tool("save_checkpoint", asked))["sequence"] == 1
            denied = await session.call_tool("list_checkpoints", {"workflow_id": "b-1"})
            assert problem(denied).startswith("permission_denied: ")
        async with spoken_to(store) as session:
            assert await names(session) == READS | VERIFIES
            shown = await session.call_tool(
                "show_checkpoint", {"checkpoint": "a-7", "pointer": "/context/text"}
            )
            assert told(shown)["state"] == "caf\u00e9 \u2603 \x00"

    asyncio.run(main())


def test_the_sample_of_the_page_goes_on_where_it_was(tmp_path: Path) -> None:
    runs = [run_sample(sample("mcp"), tmp_path) for _ in range(2)]
    assert [run.lines for run in runs] == [
        ["goes on after turn 0", "chat-1@1", "chat-1@2"],
        ["goes on after turn 2", "chat-1@3", "chat-1@4"],
    ], runs


def test_what_a_server_said_is_saved_survives_its_death(store: Path) -> None:
    words = [sys.executable, "-m", "holdfast", "mcp", "--store", str(store), "--write"]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(store.parent), text=True
    ) as server:
        try:
            asked = {"workflow_id": "a-1", "state": {"i": 7}, "reason": "next"}
            answers = [_spoken(server, number, *line) for number, line in enumerate(_opening(asked))]
        finally:
            server.kill()
    assert answers[-1]["result"]["structuredContent"]["checkpoint"] == "a-1@2"
    with holdfast.open(str(store)) as service:
        latest = service.load_latest("a-1")
        assert latest is not None and latest.context == {"i": 7}
        assert service.audit.verify().fault_count == 0


def _opening(asked: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The protocol as it goes over the wire: a client would tidy up after the server it talks to."""
    client = {
        "protocolVersion": LATEST_PROTOCOL_VERSION,
        "capabilities": {},
        "clientInfo": CLIENT.model_dump(),
    }
    return [
        ("initialize", client),
        ("notifications/initialized", {}),
        ("tools/call", {"name": "save_checkpoint", "arguments": asked}),
    ]


def _spoken(server: subprocess.Popen[str], number: int, method: str, params: dict[str, Any]) -> Any:
    assert server.stdin is not None and server.stdout is not None
    told = {"jsonrpc": "2.0", "method": method, "params": params}
    is_heard = method.startswith("notifications/")
    server.stdin.write(json.dumps(told if is_heard else {**told, "id": number}) + "\n")
    server.stdin.flush()
    return None if is_heard else json.loads(server.stdout.readline())
