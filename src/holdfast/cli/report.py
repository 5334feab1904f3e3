"""`holdfast report`: tell people how a workflow went."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.audit_files import write_file
from holdfast.cli.copying import bar
from holdfast.cli.events import PAUSE_SECONDS
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import entry_of, find_workflow, reading, tell
from holdfast.cli.output import Output, json_text, safe
from holdfast.cli.run_standing import report_path
from holdfast.domain.audit_type import AuditType

if TYPE_CHECKING:
    from holdfast.application.insight.run_report import RunReport
    from holdfast.application.kit import Kit

FORMATS = ("md", "html", "json")


@click.command("report", cls=StoreCommand)
@click.argument("workflow")
@click.option(
    "--format", "layout", type=click.Choice(FORMATS), help="How; by default what --out ends with, else md."
)
@click.option("--out", metavar="FILE", help="Write there, in place of what is there; else it is printed.")
@click.option(
    "--follow", is_flag=True, help="Write --out anew whenever something happens, until the run ends."
)
def command(call: Call, workflow: str, layout: str | None, out: str | None, follow: bool) -> None:
    """Tell people how a workflow went: Markdown, HTML, JSON.

    How it stands, what happened when, decisions and why, approvals, failures,
    what it cost, what the agents found out, and how to verify all of it. It is
    made from the journal alone: of the same store it says the same.

    \b
    Example:
      holdfast report WF-2026-001 --format html --out report.html
    """
    if follow and out is None:
        raise click.UsageError("--follow needs --out: what is printed cannot be written anew")
    chosen = _layout(call.output, layout, out)
    with reading(call) as kit:
        find_workflow(kit, workflow)
        facts: dict[str, int | str] = {"format": chosen, **({"follow": "yes"} if follow else {})}
        tell(call, kit, [entry_of(kit, AuditType.EVENTS_READ, workflow, facts)])
        if out is None:
            _print(call.output, kit, workflow, chosen)
            return
        written = _write(call.output, kit, workflow, chosen, out)
        while follow and not _is_over(written):
            time.sleep(PAUSE_SECONDS)
            if kit.store.head(workflow).event_seq != written.last_event:
                written = _write(call.output, kit, workflow, chosen, out)
    _tell_written(call.output, workflow, chosen, out)


def _layout(output: Output, asked: str | None, out: str | None) -> str:
    ending = os.path.splitext(out or "")[1].lstrip(".").lower()
    by_name = {"htm": "html", "markdown": "md"}.get(ending, ending)
    told = asked or (by_name if by_name in FORMATS else None)
    return told or ("json" if output.as_json and out is None else "md")


def _print(output: Output, kit: Kit, workflow_id: str, layout: str) -> None:
    found = _read(output, kit, workflow_id)
    path = report_path(kit, workflow_id)
    if output.as_json:
        more = {} if layout == "json" else {"report": _text(found, layout)}
        output.data({**_fields(found), **more, "progress_report": path})
        return
    text = _text(found, layout)
    if layout == "md":
        output.lines(safe(line) for line in text.splitlines())
    else:
        # Nothing in it is obeyed by a terminal already, and a page has to stay what it is.
        click.echo(text, nl=False)
    if path is not None:
        output.note(f"note: what the agents reported is also in {safe(path)}")


def _fields(found: RunReport) -> dict[str, Any]:
    from holdfast.application.insight.run_report_values import as_fields

    return as_fields(found)


def _text(found: RunReport, layout: str) -> str:
    from holdfast.application.insight.run_report import as_html, as_markdown

    if layout == "json":
        return json_text(_fields(found)) + "\n"
    return as_html(found) if layout == "html" else as_markdown(found)


def _read(output: Output, kit: Kit, workflow_id: str) -> RunReport:
    """Put the report together; a long one shows how far it is."""
    from holdfast.application.insight.run_report import report

    with bar(output, [workflow_id], "report") as show:
        return report(kit, workflow_id, lambda done, total: show(workflow_id, done, total))


def _write(output: Output, kit: Kit, workflow_id: str, layout: str, out: str) -> RunReport:
    """Write the file; answer what it tells."""
    found = _read(output, kit, workflow_id)
    write_file(out, _text(found, layout).encode("utf-8", "replace"))
    return found


def _is_over(found: RunReport) -> bool:
    from holdfast.application.insight.following import ENDED

    return found.status in ENDED


def _tell_written(output: Output, workflow_id: str, layout: str, out: str) -> None:
    if out == "-":
        return
    size_bytes = os.path.getsize(out)
    if output.as_json:
        output.data({"workflow_id": workflow_id, "format": layout, "file": out, "bytes": size_bytes})
    else:
        output.note(f"Wrote {safe(out)}, {size_bytes:,} bytes.")
