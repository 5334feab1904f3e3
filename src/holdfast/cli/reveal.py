"""`holdfast reveal`: what is masked in a state, for somebody who says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.changing import Change, changes, tell_plan
from holdfast.cli.exits import Exit, Failure
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.moments import read_point
from holdfast.cli.opening import reading, writing
from holdfast.cli.output import Output, counted, safe
from holdfast.cli.points import app_for, app_option, find_point
from holdfast.cli.resolver_loading import resolver_named, resolver_option
from holdfast.cli.values import pretty
from holdfast.domain.plainjson import as_json_tree

if TYPE_CHECKING:
    from holdfast.application.unmasking import Unmasked

_NAMED_MAX = 20


@click.command("reveal", cls=StoreCommand)
@click.argument("checkpoint", metavar="ID", callback=read_point)
@click.argument("pointer", metavar="[POINTER]", default="")
@resolver_option
@app_option
@changes(needs_reason=True)
def command(
    call: Call, checkpoint: str, pointer: str, resolver: str | None, app: str | None, change: Change
) -> None:
    """Show what is masked in a state, and tell why.

    Secrets are hidden before anything is stored: --resolver names what gives
    them back. It is a list of secrets, of which one is shown only where it is
    the one that was hidden, or a function of yours. Values of people are opened
    with their keys. Who looked, and why, is in the trail before it is shown.

    \b
    Example:
      holdfast reveal WF-1@latest /context/password --reason "ticket 7"
    """
    from holdfast.application.insight.masks import masks_of
    from holdfast.application.unmasking import obstacles, unmask
    from holdfast.domain.pointer import look_up, parse_pointer

    resolver_of = resolver_named(resolver)
    program = app_for(app, checkpoint)
    with reading(call, app=program) as kit:
        point = find_point(kit, checkpoint)
        masks = masks_of(look_up(point.tree, parse_pointer(pointer)))
        places = masks.pointers(pointer)
        refusals, _ = obstacles(kit, masks, has_resolver=resolver_of is not None)
        if refusals:
            raise Failure("cannot_reveal", Exit.REFUSED, refusals[0], place=pointer or str(point))
        if change.dry_run:
            told = ", ".join(places[:_NAMED_MAX])
            tell_plan(call.output, f"{counted(len(places), 'masked place')}: {safe(told)}", places=places)
            return
        with writing(call, reason=change.reason, workflow_id=point.workflow_id) as service:
            given = None if resolver_of is None or not masks.hidden else resolver_of(kit)
            shown = unmask(kit, service.audit, point, pointer, given)
    _show(call.output, str(point), pointer, shown)


def _show(output: Output, name: str, pointer: str, shown: Unmasked) -> None:
    if output.as_json:
        counts = {"filled": shown.filled, "opened": shown.opened, "left": list(shown.left)}
        output.data({"id": name, "pointer": pointer, "state": as_json_tree(shown.value), **counts})
        return
    output.line(pretty(shown.value))
    if shown.left:
        output.note(f"Still masked: {safe(', '.join(shown.left[:_NAMED_MAX]))}")
