"""The MCP server: an agent saves, lists, compares and restores its checkpoints, and reads its trail."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from holdfast.domain.errors import CheckpointError
from holdfast.integrations.framework import framework
from holdfast.integrations.mcp_desk import Desk, Scope, Wish, Work, agent_name

with framework("mcp", "1.30", "2", extra="mcp"):
    from mcp.server.fastmcp import FastMCP
    from mcp.server.fastmcp.exceptions import ToolError
    from mcp.types import ToolAnnotations
    from pydantic import ValidationError

_LOG = logging.getLogger("holdfast")
_INSTRUCTIONS = (
    "Durable checkpoints of workflows. A checkpoint is named WORKFLOW@NUMBER, WORKFLOW@latest or"
    " WORKFLOW@latest~1; WORKFLOW@event:41 is a point between two. Answers are bounded: ask for a part of a"
    " state with a JSON pointer. Whatever you read or write is told in an audit trail."
)
_TOOLS = {
    Scope.READ: (
        "list_workflows",
        "list_checkpoints",
        "show_checkpoint",
        "diff_checkpoints",
        "read_events",
        "read_trail",
    ),
    Scope.VERIFY: ("validate_checkpoint", "verify_trail"),
    Scope.APPEND: ("save_checkpoint", "record_decision", "restore_checkpoint", "fork_workflow"),
}


class HoldfastServer(FastMCP[Any]):
    """A server whose tools fail with a code of ours, and what to do."""

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool; what goes wrong is told without what the framework puts around it."""
        try:
            return await super().call_tool(name, arguments)
        except ToolError as problem:
            raise ToolError(self._told(name, problem)) from None

    def _told(self, name: str, problem: ToolError) -> str:
        cause = problem.__cause__
        if isinstance(cause, ValidationError):
            faults = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in cause.errors())
            return f"wrong_usage: {'; '.join(faults)}"
        if isinstance(cause, ToolError):
            return str(cause)
        if any(name in names for names in _TOOLS.values()):
            return f"permission_denied: {name} is not offered. The server needs another --scope, or --write."
        return f"wrong_usage: {problem}"


def build_server(desk: Desk, scopes: frozenset[Scope]) -> HoldfastServer:
    """Make a server with the tools of some scopes; run it with `server.run()`."""
    server = HoldfastServer("holdfast", instructions=_INSTRUCTIONS, log_level="WARNING")
    tools = Tools(desk, server)
    for scope in (scope for scope in Scope if scope in scopes):
        hints = ToolAnnotations(
            readOnlyHint=scope is not Scope.APPEND, destructiveHint=False, openWorldHint=False
        )
        for name in _TOOLS[scope]:
            server.add_tool(getattr(tools, name), annotations=hints)
    return server


class Tools:
    """The tools, by the names that an agent calls them by. Their docstrings are what it reads."""

    def __init__(self, desk: Desk, server: FastMCP[Any]) -> None:
        self._desk = desk
        self._server = server

    async def list_workflows(self, limit: int = 50) -> dict[str, Any]:
        """List workflows with their newest checkpoint, the one last written to first."""
        return await _answered(lambda: self._desk.workflows(limit))

    async def list_checkpoints(self, workflow_id: str, limit: int = 50) -> dict[str, Any]:
        """List the checkpoints of a workflow, newest first."""
        return await _answered(lambda: self._desk.checkpoints(workflow_id, limit))

    async def show_checkpoint(self, checkpoint: str, pointer: str = "") -> dict[str, Any]:
        """Show the verified state at a checkpoint (WF@42, WF@latest) or a place in it (pointer=/context)."""
        agent = self._agent
        return await _answered(lambda: self._desk.show(checkpoint, pointer, agent))

    async def diff_checkpoints(self, a: str, b: str) -> dict[str, Any]:
        """Tell what changed from checkpoint a to checkpoint b."""
        agent = self._agent
        return await _answered(lambda: self._desk.diff(a, b, agent))

    async def read_events(self, workflow_id: str, after: int = 0, limit: int = 50) -> dict[str, Any]:
        """Read events of a workflow in their order: those with a sequence above `after`."""
        agent = self._agent
        return await _answered(lambda: self._desk.events(workflow_id, after, limit, agent))

    async def read_trail(self, workflow_id: str, limit: int = 50) -> dict[str, Any]:
        """Read the audit trail of a workflow, newest entries first: who did what, when and why."""
        return await _answered(lambda: self._desk.trail(workflow_id, limit))

    async def validate_checkpoint(self, checkpoint: str) -> dict[str, Any]:
        """Check that a checkpoint is, byte for byte, what was committed."""
        return await _answered(lambda: self._desk.validate(checkpoint))

    async def verify_trail(self) -> dict[str, Any]:
        """Verify the whole audit trail: nothing in it was changed, cut or put in."""
        return await _answered(self._desk.verify_trail)

    async def save_checkpoint(
        self,
        workflow_id: str,
        state: dict[str, Any],
        reason: str,
        messages: list[Any] | None = None,
        expected_sequence: int | None = None,
    ) -> dict[str, Any]:
        """Save a state durably, as a new checkpoint. `reason` is kept in the trail.

        Give the number of the checkpoint you build on as `expected_sequence`: if somebody else saved
        meanwhile, you get checkpoint_conflict and nothing is overwritten.
        """
        wish = Wish("save_checkpoint", workflow_id, reason, self._agent)
        return await _answered(lambda: self._desk.save(wish, state, messages, expected_sequence))

    async def record_decision(
        self, workflow_id: str, description: str, reason: str, confidence: float | None = None
    ) -> dict[str, Any]:
        """Record a decision and why it was made."""
        wish = Wish("record_decision", workflow_id, reason, self._agent)
        return await _answered(lambda: self._desk.decide(wish, description, confidence))

    async def restore_checkpoint(self, workflow_id: str, checkpoint: str, reason: str) -> dict[str, Any]:
        """Make an earlier state of a workflow the newest again. Nothing is lost: it is a new checkpoint."""
        wish = Wish("restore_checkpoint", workflow_id, reason, self._agent, {"from": checkpoint[:200]})
        return await _answered(lambda: self._desk.restore(wish, checkpoint))

    async def fork_workflow(self, checkpoint: str, new_workflow_id: str, reason: str) -> dict[str, Any]:
        """Begin a new workflow from a checkpoint of another, which stays as it is."""
        wish = Wish("fork_workflow", new_workflow_id, reason, self._agent)
        return await _answered(lambda: self._desk.fork(wish, checkpoint))

    @property
    def _agent(self) -> str | None:
        """The client, by the name that it gives itself."""
        client = self._server.get_context().session.client_params
        return agent_name(client.clientInfo.name) if client is not None else None


async def _answered(work: Work) -> dict[str, Any]:
    """Do what waits for the disk beside the loop; tell what goes wrong by its code, and never by a trace."""
    try:
        return await asyncio.to_thread(work)
    except CheckpointError as problem:
        raise ToolError(f"{problem.code}: {problem}") from None
    except Exception as problem:
        _LOG.exception("a tool failed")
        raise ToolError(f"unexpected: {type(problem).__name__}; this is a defect of Holdfast") from None
