"""`holdfast validate`: whether stored checkpoints are what was committed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.bars import watched
from holdfast.cli.changing import Change, changes
from holdfast.cli.exits import Exit
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.moments import read_moment
from holdfast.cli.opening import at_its_store, entry_of, find, reading, tell, writing
from holdfast.cli.output import Output, counted, safe
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointError, KeyUnavailableError

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.application.recovery.quarantining import SetAside
    from holdfast.application.validate import Listed, ValidationResult
    from holdfast.domain.audit_entry import AuditEntry

#: So many checkpoints of a neighbourhood are checked by one thread at a time.
_STRETCH_MAX = 256

#: How the place of what was set aside begins, and what ends its being told.
QUARANTINED = "quarantine: "
QUARANTINE_HINT = (
    "`holdfast quarantine list` names it. A checkpoint put back from a backup is freed by `quarantine "
    "release NAME --reason ...`; evidence that nobody needs any more goes with `quarantine drop NAME "
    "--reason ...`."
)


@dataclass(slots=True)
class Verdict:
    """What was looked at and what is wrong, each with its place."""

    checkpoints: int = 0
    events: int = 0
    #: Whether events were looked at, and the store's own files.
    is_deep: bool = False
    problems: list[tuple[str, str]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    #: What is wrong with checkpoints, by workflow and sequence; nothing where it did no harm.
    damaged: dict[str, dict[int, str]] = field(default_factory=dict)
    #: What was done about it, and what could not be.
    set_aside: list[SetAside] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        """True if nothing is wrong."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class Which:
    """Which of all checkpoints are checked, and how many at a time.

    Attributes:
        sample: the share of them, chosen by chance; None for all.
        since: only those made later.
    """

    sample: float | None = None
    since: datetime | None = None
    jobs: int = 1

    @property
    def is_narrowed(self) -> bool:
        """Whether some are left out."""
        return self.sample is not None or self.since is not None

    def chosen(self, checkpoints: Iterable[Listed]) -> list[Listed]:
        """Answer those that are meant, in their order: of any, at least one."""
        from random import SystemRandom

        from holdfast.domain.time import timestamp_text

        since = timestamp_text(self.since) if self.since else ""
        found = [one for one in checkpoints if one.found.entry.timestamp >= since]
        if self.sample is None or not found:
            return found
        count = max(1, round(len(found) * self.sample))
        return [found[place] for place in sorted(SystemRandom().sample(range(len(found)), count))]


EVERY = Which()


def _read_share(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """Read a share: `5%`."""
    if value is None:
        return None
    try:
        share = float(value.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not (value.endswith("%") and 0 < share <= 1):
        raise click.BadParameter(f"{value!r} is no share; write 5%", context, option)
    return share


@click.command("validate", cls=StoreCommand)
@click.argument("checkpoints", metavar="[ID]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Check every checkpoint. [default without ID]")
@click.option("--deep", is_flag=True, help="Also check events, sums, blobs and the store's own files.")
@click.option(
    "--sample", metavar="N%", callback=_read_share, help="Check so many of all, chosen by chance: 5%."
)
@click.option("--since", metavar="TIME", callback=read_moment, help="Of all, only later ones: 7d.")
@click.option(
    "--jobs", metavar="N", type=click.IntRange(1, 64), default=1, help="So many at a time. [default: 1]"
)
@click.option("--quarantine", is_flag=True, help="Set aside what is damaged, and rebuild keyframes.")
@changes()
def command(
    call: Call,
    checkpoints: tuple[str, ...],
    everything: bool,
    deep: bool,
    quarantine: bool,
    change: Change,
    **narrowed: Any,
) -> None:
    """Check that checkpoints are what was committed.

    Each record, its place in the chain, the state and its blobs are read and
    compared with the checksums committed with them. Ends with 20 if anything
    is wrong. With --quarantine the bytes of what is damaged are kept as
    evidence, and it is refused from then on.

    \b
    Example:
      holdfast validate --all --deep
    """
    which = Which(**narrowed)
    if checkpoints and (everything or which.is_narrowed):
        raise click.UsageError("give checkpoints, or --all with --sample and --since, not both")
    verdict, call = Verdict(), at_its_store(call, checkpoints[0]) if checkpoints else call
    with reading(call) as kit:
        named = _named(kit, checkpoints)
        if checkpoints:
            _check_each(call.output, kit, named, verdict, jobs=which.jobs)
        else:
            check_everything(call.output, kit, verdict, which)
        if deep:
            check_deeply(call.output, kit, verdict)
        url = kit.store.url
        tell(call, kit, _entries(kit, named, verdict))
    if quarantine and verdict.damaged:
        _set_aside(call, verdict, change)
    _print(call.output, url, verdict)
    if not verdict.valid:
        raise click.exceptions.Exit(Exit.CORRUPT)


def _set_aside(call: Call, verdict: Verdict, change: Change) -> None:
    """Set aside what is damaged: the pieces, and not what merely hangs on them."""
    from holdfast.application.recovery.quarantining import SetAside

    if change.dry_run:
        pieces = [f"{name}@{number}" for name, found in verdict.damaged.items() for number in found]
        told = f"would be set aside: {', '.join(pieces)}" if pieces else "keyframes would be rebuilt"
        verdict.set_aside.append(SetAside(notes=(told,)))
        return
    try:
        with writing(call, reason=change.reason) as service:
            for workflow_id, problems in verdict.damaged.items():
                verdict.set_aside.append(service.quarantine.set_aside_invalid(workflow_id, problems))
    except CheckpointError as refusal:
        # What was found is worth telling all the same.
        verdict.set_aside.append(SetAside(notes=(f"not everything could be set aside: {refusal}",)))


def _entries(kit: Kit, named: list[Listed], verdict: Verdict) -> list[AuditEntry]:
    """Say what was validated: those that were named one by one, and everything in one entry."""
    if not named:
        facts: dict[str, int | str] = {
            "checkpoints": verdict.checkpoints,
            "events": verdict.events,
            "problems": len(verdict.problems),
        }
        return [entry_of(kit, AuditType.CHECKPOINT_VALIDATED, None, facts, failed=not verdict.valid)]
    damaged = {place for place, _ in verdict.problems}
    return [
        entry_of(
            kit,
            AuditType.CHECKPOINT_VALIDATED,
            listed.found.workflow_id,
            {"cp_seq": listed.found.entry.sequence, "checksum": listed.found.entry.checksum},
            failed=str(listed.found) in damaged,
        )
        for listed in named
    ]


def check_everything(output: Output, kit: Kit, verdict: Verdict, which: Which = EVERY) -> None:
    """Check all checkpoints that are kept, or those that are chosen."""
    _check_each(output, kit, which.chosen(_all_checkpoints(kit, verdict)), verdict, jobs=which.jobs)


def _named(kit: Kit, names: Iterable[str]) -> list[Listed]:
    from holdfast.application.validate import list_one

    return [list_one(kit.store, find(kit, name)) for name in names]


def _all_checkpoints(kit: Kit, verdict: Verdict) -> Iterator[Listed]:
    from holdfast.application.validate import list_workflow, told
    from holdfast.application.vanished import vanished

    for workflow_id in sorted(kit.store.workflows()):
        last = 0
        try:
            for listed in list_workflow(kit.store, workflow_id):
                last = max(last, listed.found.entry.event_seq)
                yield listed
            for gone in vanished(kit.store, workflow_id, last, kit.vault):
                verdict.problems.append((f"{workflow_id}@{gone}", "its journal tells of it; it is nowhere"))
        except CheckpointError as error:
            verdict.problems.append((workflow_id, told(error, workflow_id)))


def _check_each(
    output: Output, kit: Kit, checkpoints: list[Listed], verdict: Verdict, *, jobs: int = 1
) -> None:
    from holdfast.application.validate import told

    results = _results(kit, checkpoints, jobs)
    for listed, result in watched(output, results, "checkpoints", total=len(checkpoints)):
        place = str(listed.found)
        verdict.checkpoints += 1
        if isinstance(result, CheckpointError):
            verdict.problems.append((place, told(result, place)))
            continue
        verdict.problems.extend((place, problem) for problem in result.problems)
        verdict.notes.extend((place, note) for note in result.notes)
        if result.problems or result.notes:
            found = verdict.damaged.setdefault(listed.found.workflow_id, {})
            if result.problems:
                found[listed.found.entry.sequence] = result.problems[0]


def _results(
    kit: Kit, checkpoints: list[Listed], jobs: int
) -> Iterator[tuple[Listed, ValidationResult | CheckpointError]]:
    """Validate checkpoints in their order, several at a time if that is wanted."""
    if jobs == 1:
        yield from map(_validator(kit), checkpoints)
        return
    from concurrent.futures import ThreadPoolExecutor

    # Neighbours share most of what is read for them, so each thread gets a stretch of them.
    size = min(_STRETCH_MAX, -(-len(checkpoints) // jobs) or 1)
    stretches = [checkpoints[start : start + size] for start in range(0, len(checkpoints), size)]
    with ThreadPoolExecutor(jobs) as pool:
        for done in pool.map(lambda stretch: list(map(_validator(kit), stretch)), stretches):
            yield from done


def _validator(kit: Kit) -> Callable[[Listed], tuple[Listed, ValidationResult | CheckpointError]]:
    """Answer what validates checkpoints, for one thread."""
    from holdfast.application.reading import Reader
    from holdfast.application.validate import validate_listed

    reader = Reader(kit)

    def validated(listed: Listed) -> tuple[Listed, ValidationResult | CheckpointError]:
        try:
            return listed, validate_listed(kit, reader, listed)
        except KeyUnavailableError:
            # Nothing is damaged, and nothing would be found out with it: the key is the matter.
            raise
        except CheckpointError as error:
            return listed, error

    return validated


def check_deeply(output: Output, kit: Kit, verdict: Verdict) -> None:
    """Check the chains of events and everything the store keeps about itself."""
    from holdfast.application.history import look, read_events
    from holdfast.application.validate import told

    verdict.is_deep = True
    for workflow_id in watched(output, sorted(kit.store.workflows()), "events", what=str):
        try:
            verdict.events += sum(1 for _ in read_events(kit.store, look(kit.store, workflow_id)))
        except CheckpointError as error:
            verdict.problems.append((f"events of {workflow_id}", told(error, workflow_id)))
    for finding in kit.store.check():
        kept = verdict.problems if finding.harm else verdict.notes
        kept.append((finding.place, finding.problem))


def _print(output: Output, url: str, verdict: Verdict) -> None:
    if output.as_json:
        output.data(as_fields(url, verdict))
        return
    for place, note in verdict.notes:
        output.line(f"{output.paint('note', 'warn')}  {safe(place)}: {safe(note)}")
    for place, problem in verdict.problems:
        output.line(f"{output.paint('damaged', 'bad')}  {safe(place)}: {safe(problem)}")
    for done in verdict.set_aside:
        _print_set_aside(output, done)
    checked = counted(verdict.checkpoints, "checkpoint")
    if verdict.events:
        checked += f" and {counted(verdict.events, 'event')}"
    if verdict.valid:
        found = (
            "every byte is what was committed"
            if verdict.is_deep
            else "every byte of them is what was committed"
        )
        if verdict.notes:
            found = f"every state comes back as it was committed; {counted(len(verdict.notes), 'note')} above"
        rest = "" if verdict.is_deep else "; events were not checked, --deep does that"
        output.line(f"{output.paint('valid', 'good')}  {checked}: {found}{rest}")
    else:
        output.line(f"{counted(len(verdict.problems), 'problem')} in {checked}")
        _advise(output, verdict)


def _advise(output: Output, verdict: Verdict) -> None:
    """Say what to do next, once for each kind of damage."""
    were_set_aside = [place.startswith(QUARANTINED) for place, _ in verdict.problems]
    if not all(were_set_aside):
        names = [name for name, found in verdict.damaged.items() if found]
        workflow = safe(names[0]) if len(names) == 1 else "WORKFLOW"
        then = "--quarantine keeps the damaged bytes, and rebuilds keyframes."
        if verdict.set_aside:
            then = "`holdfast quarantine list` names what was set aside."
        output.note(f"`holdfast recover {workflow} --plan` shows what can be brought back; {then}")
    if any(were_set_aside):
        output.note(f"quarantine: {QUARANTINE_HINT}")


def _print_set_aside(output: Output, done: SetAside) -> None:
    for note in done.notes:
        output.note(f"note: {safe(note)}")
    for one in done.quarantined:
        word = "set aside" if one.released is None else "rebuilt"
        output.line(f"{word}  {safe(one.place)}: the bytes are kept as {safe(one.name)}")


def as_fields(url: str, verdict: Verdict) -> dict[str, Any]:
    """Write a verdict for programs."""
    return {
        "store": url,
        "valid": verdict.valid,
        "deep": verdict.is_deep,
        "checkpoints": verdict.checkpoints,
        "events": verdict.events,
        "problems": [{"place": place, "problem": problem} for place, problem in verdict.problems],
        "notes": [{"place": place, "note": note} for place, note in verdict.notes],
        "quarantined": [one.name for done in verdict.set_aside for one in done.quarantined],
        "not_set_aside": [note for done in verdict.set_aside for note in done.notes],
    }
