"""Long work: looking at it, and cancelling it."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from holdfast.domain.access import Scope
from holdfast.server.acting import CHANGING, NOT_FOUND, Acting, begin
from holdfast.server.desk import Desk
from holdfast.server.operation import Asked, Operation
from holdfast.server.operations import OperationRow
from holdfast.server.problems import Refusal
from holdfast.server.slices import Part, part_of
from holdfast.server.totals import Total


class OperationPage(msgspec.Struct):
    """Some operations, the newest first."""

    items: list[OperationRow]
    next_cursor: str | None
    total: Total = UNSET


def list_operations(desk: Desk, asked: Asked[Part, None]) -> OperationPage:
    """List what this server remembers."""
    return OperationPage(*part_of(desk.operations.rows(), asked.query, lambda row: row.id))


def get_operation(desk: Desk, asked: Asked[None, None]) -> OperationRow:
    """Show one."""
    return desk.operations.find(asked.path["operation"]).row()


def cancel_operation(desk: Desk, asked: Asked[None, Acting]) -> OperationRow:
    """Ask one to end at its next step; whoever may begin such may cancel it."""
    running = desk.operations.find(asked.path["operation"])
    if not asked.identity.may(running.scope):
        raise Refusal(
            403,
            "scope_missing",
            f"cancelling this needs the scope {running.scope}",
            hint=f"{asked.identity.name} has: {', '.join(sorted(asked.identity.scopes))}.",
        )
    begin(desk, asked, "cancelOperation", running.workflow_id)
    return desk.operations.cancel(running.id)


OPERATIONS = (
    Operation(
        "listOperations",
        "GET",
        "/operations",
        Scope.READ,
        "List the long work that this server did, does and will do.",
        list_operations,
        query=Part,
        result=OperationPage,
        tag="operations",
    ),
    Operation(
        "getOperation",
        "GET",
        "/operations/{operation}",
        Scope.READ,
        "Show how an operation stands, and what came of it.",
        get_operation,
        result=OperationRow,
        tag="operations",
        problems=NOT_FOUND,
    ),
    Operation(
        "cancelOperation",
        "DELETE",
        "/operations/{operation}",
        Scope.READ,
        "Let an operation end at its next step; needs the scope that beginning it needs.",
        cancel_operation,
        body=Acting,
        result=OperationRow,
        acts=True,
        # Those of all that can be begun: who can begin nothing leaves nothing in the store by trying.
        one_of=(Scope.WRITE, Scope.RECOVER, Scope.AUDIT_READ, Scope.AUDIT_EXPORT),
        tag="operations",
        problems=CHANGING,
    ),
)
