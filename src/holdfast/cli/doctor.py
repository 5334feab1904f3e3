"""`holdfast doctor`: look at everything under a store, and say what to do about it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from itertools import zip_longest
from textwrap import wrap
from typing import TYPE_CHECKING

import click

from holdfast.cli import machine
from holdfast.cli.audit_doctor import trail_checks
from holdfast.cli.bars import watched
from holdfast.cli.changing import Change, changes
from holdfast.cli.exits import Exit
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.machine import FAIL, INFO, OK, WARN, Check
from holdfast.cli.mending import mended
from holdfast.cli.opening import reading
from holdfast.cli.output import Output, counted, safe, size_text
from holdfast.cli.session_doctor import session_checks
from holdfast.cli.validate import QUARANTINE_HINT, QUARANTINED
from holdfast.domain.errors import CheckpointCorruptError, CheckpointError, KeyUnavailableError
from holdfast.domain.json_reading import read_json

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.ports import Finding

_MEANINGS = {OK: "good", WARN: "warn", FAIL: "bad"}
_FINDINGS_SHOWN_MAX = 20
_NAME_WIDTH = 13
_TEXT_WIDTH = 58
_SILENT = Output(quiet=True)


@click.command("doctor", cls=StoreCommand)
@click.option("--fix", "is_fixed", is_flag=True, help="Mend what is safe to mend, and examine it again.")
@changes()
def command(call: Call, is_fixed: bool, change: Change) -> None:
    """Examine the store, its disk and this installation.

    Changes nothing without --fix. That takes the rights of group and others
    away, settles what a process left that ended without closing the store, and
    removes files that killed writers left and nothing refers to; nothing that is
    stored changes. Ends with 20 if a check fails; a warning is no failure.

    \b
    Example:
      holdfast doctor --store .holdfast
    """
    url, checks = _examined(call)
    fixed: list[str] = []
    if is_fixed:
        fixed = mended(call, url, checks, change)
        if fixed and not change.dry_run:
            url, checks = _examined(call)
    _print(call.output, url, checks, fixed, is_dry=change.dry_run)
    if any(check.status == FAIL for check in checks):
        raise click.exceptions.Exit(Exit.CORRUPT)


def _examined(call: Call) -> tuple[str, list[Check]]:
    """Look at everything; answer where the store is, and what was found."""
    url = call.store or ""
    try:
        with reading(call) as kit:
            url = kit.store.url
            looked_at = (
                store_checks(kit, call.output),
                key_checks(kit),
                trail_checks(kit),
                session_checks(kit),
                place_checks(kit),
            )
            checks = [check for checks in looked_at for check in checks]
    except CheckpointCorruptError as error:
        checks = [Check("store", FAIL, f"{error.message}: {error.place}", error.hint)]
    return url, [*checks, *installation_checks()]


def store_checks(kit: Kit, output: Output = _SILENT) -> Iterator[Check]:
    """Look at what the store holds and what it finds about itself."""
    stats = kit.store.stats()
    workflows = sorted(kit.store.workflows())
    held = f"{counted(len(workflows), 'workflow')}, {size_text(stats.get('bytes', 0))}"
    yield Check("store", OK, f"readable; {held}")
    findings = list(kit.store.check())
    yield from map(_finding, findings[:_FINDINGS_SHOWN_MAX])
    if len(findings) > _FINDINGS_SHOWN_MAX:
        yield Check("files", FAIL, f"and {len(findings) - _FINDINGS_SHOWN_MAX} findings more")
    if not findings:
        yield Check("files", OK, "what the store keeps about itself is whole")
    yield from _history_checks(kit, workflows, output)
    yield machine.clock(kit.clock.now(), _newest(kit, workflows))


def _history_checks(kit: Kit, workflows: list[str], output: Output) -> Iterator[Check]:
    """Read every record and every event, each verified on top of the one before."""
    from holdfast.application.history import look, read_events, read_records

    checkpoints = 0
    damaged = []
    for workflow_id in watched(output, workflows, "history", what=str):
        try:
            history = look(kit.store, workflow_id)
            checkpoints += sum(1 for _ in read_records(kit.store, history))
            for _ in read_events(kit.store, history):
                continue
        except CheckpointError as error:
            hint = f"Run `holdfast recover {workflow_id} --plan` to see what can be brought back."
            damaged.append(Check("history", FAIL, f"{error.message}: {error.place or workflow_id}", hint))
    yield from damaged[:_FINDINGS_SHOWN_MAX]
    if len(damaged) > _FINDINGS_SHOWN_MAX:
        yield Check("history", FAIL, f"and {len(damaged) - _FINDINGS_SHOWN_MAX} workflows more")
    if not damaged:
        yield Check("history", OK, f"{counted(checkpoints, 'record')} and their events verified")


def key_checks(kit: Kit) -> Iterator[Check]:
    """Look whether the key that is configured opens an encrypted store."""
    if kit.vault is None:
        return
    if not kit.vault.keyring.sources:
        yield Check("key", INFO, "encrypted, and no key is configured: states were not looked into")
        return
    try:
        kit.vault.keyring.unlock()
        yield Check("key", OK, "encrypted, and the configured key opens it")
    except KeyUnavailableError as error:
        yield Check("key", FAIL, f"{error.message}: {error.place}", error.hint)


def _finding(finding: Finding) -> Check:
    status = FAIL if finding.harm else WARN
    hint = "Run `holdfast validate --all --deep`."
    if finding.place.startswith(QUARANTINED):
        hint = QUARANTINE_HINT
    return Check("files", status, f"{finding.place}: {finding.problem}", hint if finding.harm else "")


def _newest(kit: Kit, workflows: list[str]) -> datetime | None:
    """Find the time of the newest checkpoint; what cannot be read is told by the other checks."""
    from holdfast.domain.time import parse_timestamp

    newest = ""
    for workflow_id in workflows:
        with suppress(CheckpointError):
            last = next(kit.store.entries(workflow_id, newest_first=True), None)
            newest = max(newest, last.timestamp if last else "")
    return parse_timestamp(newest) if newest else None


def place_checks(kit: Kit) -> Iterator[Check]:
    """Look at where a store lies: a folder, a file, a server."""
    scheme, _, folder = kit.store.url.partition(":")
    if scheme == "file":
        yield from _folder_checks(kit, folder)
    if scheme == "sqlite":
        yield from _file_checks(kit, folder)
    reclaimable_bytes = kit.store.stats().get("reclaimable_bytes")
    if reclaimable_bytes is not None:
        yield Check("space", OK, f"{size_text(reclaimable_bytes)} can be reclaimed from what was removed")


def _file_checks(kit: Kit, path: str) -> Iterator[Check]:
    stats, folder = kit.store.stats(), os.path.dirname(path)
    detail = f"{stats['journal_mode']}, with {stats['sqlite']}: {stats['journal_reason']}"
    yield Check("journal", OK, detail)
    yield machine.disk_space(folder)
    yield machine.file_system(folder)
    yield machine.permissions(path)


def _folder_checks(kit: Kit, folder: str) -> Iterator[Check]:
    yield Check("format", OK, f"version {_format_version(folder)}")
    yield _journal(folder, kit.store.stats().get("pending_bytes"))
    yield machine.disk_space(folder)
    yield machine.file_system(folder)
    yield machine.sync_time(folder)
    yield machine.permissions(folder)


def _format_version(folder: str) -> str:
    with open(os.path.join(folder, "holdfast.json"), encoding="utf-8") as file:
        return str(read_json(file.read()).get("version"))


def _journal(folder: str, pending_bytes: int | None) -> Check:
    """Tell who has the store open, and what is committed but not yet in its plain files."""
    holders = machine.lock_holders(os.path.join(folder, "journal", "users"))
    who = f"open in process {', '.join(map(str, holders))}" if holders else "no process has it open"
    if not pending_bytes:
        return Check("journal", OK, f"{who}; everything is settled" if pending_bytes == 0 else who)
    waiting = f"{size_text(pending_bytes)} committed and not yet settled"
    if holders:
        return Check("journal", OK, f"{who}; {waiting}")
    hint = "A process ended without closing it. Nothing is lost: the next one that opens it settles this."
    return Check("journal", INFO, f"{who}; {waiting}", hint)


def installation_checks() -> Iterator[Check]:
    """Look at what is installed here."""
    from holdfast.bootstrap import sqlite_here

    title, mode, reason = sqlite_here()
    yield Check("sqlite", INFO, f"{title}; a new store in one file gets the {mode} journal: {reason}")
    found = machine.versions()
    parts = (f"{name} {version}" for name, version in found.items() if name != "platform")
    yield Check("versions", INFO, ", ".join(parts))


def _print(output: Output, url: str, checks: list[Check], fixed: list[str], *, is_dry: bool) -> None:
    failed = sum(check.status == FAIL for check in checks)
    warned = sum(check.status == WARN for check in checks)
    if output.as_json:
        told = {"store": url, "healthy": not failed, "checks": [asdict(check) for check in checks]}
        output.data({**told, "fixed": fixed, "dry_run": is_dry})
        return
    for one in fixed:
        output.line(f"{'would mend' if is_dry else 'mended'}  {safe(one)}")
    output.line(output.bold(f"Store {safe(url)}"))
    for check in _hinted_once(checks):
        output.lines(_check_lines(output, check))
    verdict = "healthy" if not failed else counted(failed, "check") + " failed"
    output.line(f"{verdict}, {counted(warned, 'warning')}")


def _hinted_once(checks: list[Check]) -> Iterator[Check]:
    """Leave what to do below the last of those that say the same: a full quarantine fits on a screen."""
    for check, following in zip_longest(checks, checks[1:]):
        is_said_again = following is not None and following.hint == check.hint
        yield replace(check, hint="") if is_said_again else check


def _check_lines(output: Output, check: Check) -> Iterator[str]:
    mark = f"{check.status:<4}"
    shown = output.paint(mark, _MEANINGS[check.status]) if check.status in _MEANINGS else mark
    indent = " " * (_NAME_WIDTH + 8)
    first, *rest = wrap(safe(check.detail), _TEXT_WIDTH, break_long_words=False) or [""]
    yield f"  {shown}  {check.name:<{_NAME_WIDTH}}{first}"
    hints = wrap(safe(check.hint), _TEXT_WIDTH, break_long_words=False)
    yield from (indent + line for line in (*rest, *hints))
