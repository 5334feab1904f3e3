"""Quarantine: what is damaged is set aside with its bytes, told in the trail, and refused from then on.

A report and the bytes it is about are small files of the store, committed together with the entry that tells
of them. A checkpoint that is set aside is barred by one file more, which every restore looks for. What stands
in the store itself is left as it is: it is never returned, because it does not verify, and never deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import NoneType

from holdfast.application import quarantine_files
from holdfast.application.holding import Holds
from holdfast.application.housekeeping import write_keyframe
from holdfast.application.kit import Kit
from holdfast.application.loading import caption_of
from holdfast.application.quarantine_files import parts_of_report, report_of, report_or_remains
from holdfast.application.quarantine_marks import is_quarantined
from holdfast.application.reading import Reader
from holdfast.application.recovery.quarantine_draft import (
    draft_report,
    entry_of,
    keyframe_problem,
    problem_of,
)
from holdfast.application.recovery.unusable import in_the_way, starts, why_unusable
from holdfast.application.resolve import resolve
from holdfast.application.restore import Restorer
from holdfast.application.subjects import Subjects
from holdfast.application.survey import survey
from holdfast.application.trailing import Trail, actor_of
from holdfast.application.validate import list_one, validate_listed
from holdfast.application.writer import Writer
from holdfast.domain.audit_type import AuditType
from holdfast.domain.entry_rules import FACT_CHARS_MAX
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointError,
    CheckpointNotFoundError,
    CheckpointQuarantinedError,
    ChecksumMismatchError,
    InvalidStateError,
    StateReconstructionError,
    StoreReadOnlyError,
)
from holdfast.domain.ids import check_id, check_workflow_id
from holdfast.domain.quarantine import Kind, Quarantined, Release, decode_report, encode_report, in_pieces
from holdfast.domain.quarantine_marks import mark_name
from holdfast.domain.recovery_plan import Damage, Piece
from holdfast.domain.time import timestamp_text

_ATTEMPTS_MAX = 20
#: What makes a checkpoint unusable; a key that is not at hand does not.
_DAMAGED = (CheckpointCorruptError, CheckpointNotFoundError, StateReconstructionError)

_Files = dict[str, bytes | None]


@dataclass(frozen=True, slots=True)
class SetAside:
    """What became of damage that was found.

    Attributes:
        quarantined: what is set aside, whether just now or before.
        rebuilt: sequences of keyframes that were written anew.
        notes: what could not be done, and why.
    """

    quarantined: tuple[Quarantined, ...] = ()
    rebuilt: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


class Quarantine:
    """Sets aside what is damaged, and looks after what was."""

    def __init__(self, kit: Kit, trail: Trail, writer: Writer, reader: Reader) -> None:
        self._kit = kit
        self._trail = trail
        self._writer = writer
        self._reader = reader
        self._store = kit.store
        self._restorer = Restorer(kit.store, kit.formats, kit.vault)

    # -- setting aside -----------------------------------------------------------------------

    def put(self, workflow_id: str, sequence: int, reason: str) -> Quarantined:
        """Set a checkpoint aside: its bytes are kept as evidence, and it is refused from now on. Idempotent.

        Raises:
            CheckpointNotFoundError: there is no such checkpoint, and nothing stored that could be it.
            StoreReadOnlyError: nothing can be set aside in this opening.
        """
        check_workflow_id(workflow_id)
        return self._repeated(lambda: self._put(workflow_id, sequence, reason))

    def _put(self, workflow_id: str, sequence: int, reason: str) -> Quarantined:
        mark = mark_name(workflow_id, sequence)
        before = self._store.file(mark)
        if before is not None:
            with suppress(CheckpointNotFoundError, CheckpointCorruptError):
                standing = self.get(before.decode("ascii", "replace").strip())
                if standing.bars:
                    return standing
        drafted, data = draft_report(self._kit, workflow_id, sequence, Kind.CHECKPOINT, reason)
        kept = self._keep(drafted, data, {mark: f"{drafted.name}\n".encode()}, {mark: before})
        # What is remembered of the workflow would make the next checkpoint a change on top of a damaged one.
        self._writer.forget(workflow_id)
        return kept

    def set_aside(self, workflow_id: str, damage: Iterable[Damage]) -> SetAside:
        """Set every damaged piece aside, rebuild keyframes, and bar checkpoints that cannot be restored.

        In an opening that may only read nothing is done, and that is told.
        """
        notes = list[str]()
        return self._each(damage, lambda one: self._set_one_aside(workflow_id, one, notes), notes)

    def _each(
        self, damage: Iterable[Damage], act: Callable[[Damage], Quarantined | None], notes: list[str]
    ) -> SetAside:
        done, rebuilt = list[Quarantined](), list[int]()
        for one in damage:
            try:
                quarantined = act(one)
            except StoreReadOnlyError as refusal:
                return SetAside(notes=(f"not set aside, {one}: {refusal.message}",))
            except CheckpointError as problem:
                notes.append(f"not set aside, {one}: {problem}")
                continue
            if quarantined is not None and quarantined not in done:
                done.append(quarantined)
                if quarantined.kind is Kind.KEYFRAME:
                    rebuilt.append(one.sequence)
        return SetAside(tuple(done), tuple(rebuilt), tuple(notes))

    def _set_one_aside(self, workflow_id: str, damage: Damage, notes: list[str]) -> Quarantined | None:
        sequence = damage.sequence
        if damage.piece is Piece.KEYFRAME:
            try:
                return self.rebuild_keyframe(workflow_id, sequence)
            except _DAMAGED as problem:
                notes.append(f"keyframe {workflow_id}@{sequence} cannot be rebuilt: {problem.message}")
        elif self._problem(workflow_id, sequence) is None:
            return self._repeated(lambda: self._put_aside(workflow_id, sequence, Kind.PIECE, str(damage)))
        return self.put(workflow_id, sequence, str(damage))

    def set_aside_invalid(self, workflow_id: str, problems: Mapping[int, str]) -> SetAside:
        """Set aside what makes checkpoints invalid: the damaged pieces, not all that hangs on them.

        Args:
            workflow_id: whose they are.
            problems: what a validation found, by sequence.
        """
        seen = survey(self._store, workflow_id)
        whole = starts(self._store, workflow_id, seen)
        known = {one.sequence for one in seen.damage}
        others = [
            Damage(Piece.RECORD, sequence, problem)
            for sequence, problem in sorted(problems.items())
            if sequence not in known
            and not in_the_way(seen, whole, sequence)
            and isinstance(self._problem(workflow_id, sequence), (*_DAMAGED, NoneType))
        ]
        done = self.set_aside(workflow_id, seen.damage)
        more = self._each(others, lambda one: self.put(workflow_id, one.sequence, one.problem), [])
        quarantined = dict.fromkeys((*done.quarantined, *more.quarantined))
        return SetAside(tuple(quarantined), done.rebuilt, (*done.notes, *more.notes))

    def rebuild_keyframe(self, workflow_id: str, sequence: int) -> Quarantined | None:
        """Set a damaged keyframe aside and write it anew from the older one and the changes since.

        Returns:
            The evidence; None where the keyframe is whole, or there is none.

        Raises:
            CheckpointCorruptError: nothing leads to the state any more; the evidence is kept.
            CheckpointNotFoundError: there is no older keyframe.
            StoreReadOnlyError: nothing can be written in this opening.
        """
        problem = keyframe_problem(self._store, workflow_id, sequence)
        entry = entry_of(self._store, workflow_id, sequence)
        if problem is None or entry is None:
            return None
        kept = self._repeated(lambda: self._put_aside(workflow_id, sequence, Kind.KEYFRAME, problem.message))
        restored = self._restorer.restore(workflow_id, sequence)
        if restored.checksum != entry.checksum:
            raise ChecksumMismatchError(
                "the state is not the checkpoint's", place=f"{workflow_id}@{sequence}"
            )
        caption = caption_of(self._store, workflow_id, entry)
        write_keyframe(self._kit, caption, self._restorer.whole(restored))
        self._store.keyframe(workflow_id, sequence)
        return self._release(kept, "rebuilt from the older keyframe and the changes since")

    def _put_aside(self, workflow_id: str, sequence: int, kind: Kind, reason: str) -> Quarantined:
        """Keep evidence of something whose checkpoint can still be used."""
        drafted, data = draft_report(self._kit, workflow_id, sequence, kind, reason)
        return self._keep(drafted, data, {}, {})

    def _keep(
        self, drafted: Quarantined, data: bytes, marks: _Files, expected: Mapping[str, bytes | None]
    ) -> Quarantined:
        """Commit the bytes, then the report with the entry that tells of it; nothing counts before that."""
        self._check_writable(drafted.place)
        before = self._store.file(drafted.report)
        if before is not None and not marks:
            with suppress(CheckpointCorruptError):
                standing = decode_report(drafted.name, before)
                if standing.released is None:
                    return standing
        pieces = list(in_pieces(drafted.name, data).items())
        for name, piece in pieces[:-1]:
            self._trail.commit((), {name: piece})
        files: _Files = {**dict(pieces[-1:]), drafted.report: encode_report(drafted), **marks}
        facts = self._facts(drafted, drafted.reason)
        told = self._trail.told(
            AuditType.CHECKPOINT_QUARANTINED, workflow_id=drafted.workflow_id, facts=facts
        )
        self._trail.commit(told, files, {**expected, drafted.report: before})
        return drafted

    # -- looking -----------------------------------------------------------------------------

    def is_quarantined(self, workflow_id: str, sequence: int) -> bool:
        """Tell whether a checkpoint is barred."""
        return is_quarantined(self._store, workflow_id, sequence)

    def entries(self) -> list[Quarantined]:
        """Answer everything that was set aside, the store's own files too, the oldest first."""
        return quarantine_files.reports(self._store)

    def get(self, name: str) -> Quarantined:
        """Answer one report.

        Raises:
            CheckpointNotFoundError: nothing of that name was set aside.
            CheckpointCorruptError: the report cannot be read.
        """
        return report_of(self._store, name)

    def data(self, name: str) -> bytes:
        """Answer the bytes that were set aside, as they were found, one part after the other.

        Raises:
            ChecksumMismatchError: they are not what was set aside.
        """
        return b"".join(parts_of_report(self._store, name).values())

    def why_unusable(self, workflow_id: str, sequence: int) -> tuple[Damage, ...]:
        """Name the damaged pieces that keep a checkpoint from being restored; nothing where none does."""
        return why_unusable(self._store, workflow_id, sequence)

    # -- letting go --------------------------------------------------------------------------

    def release(self, name: str, reason: str) -> Quarantined:
        """Let a checkpoint be used again that verifies again; the evidence stays.

        Raises:
            CheckpointNotFoundError: nothing of that name was set aside, or the checkpoint is gone.
            CheckpointQuarantinedError: it does not verify.
            InvalidStateError: it is no checkpoint.
        """
        check_id("reason", reason)
        report = self.get(name)
        if report.released is not None:
            return report
        if report.workflow_id is None or report.sequence is None:
            raise InvalidStateError(
                "this is no checkpoint: nothing keeps it from being used",
                place=report.place,
                hint=f"Once nobody needs the evidence: `holdfast quarantine drop {name} --reason ...`.",
            )
        with self._trail.refusals(report.workflow_id):
            self._check_verifies(report, report.workflow_id, report.sequence)
        return self._release(report, reason)

    def _check_verifies(self, report: Quarantined, workflow_id: str, sequence: int) -> None:
        if report.kind is Kind.KEYFRAME:
            problem = keyframe_problem(self._store, workflow_id, sequence)
            problems: tuple[str, ...] = () if problem is None else (problem.message,)
        else:
            found = resolve(self._store, f"{workflow_id}@{sequence}")
            problems = validate_listed(self._kit, self._reader, list_one(self._store, found)).problems
        if problems:
            raise CheckpointQuarantinedError(
                f"it does not verify, and stays in quarantine: {problems[0]}",
                place=report.place,
                hint="Put the right bytes back first, from a backup or a copy of the store.",
            )

    def _release(self, report: Quarantined, reason: str) -> Quarantined:
        moment = timestamp_text(self._kit.clock.now())
        released = replace(report, released=Release(moment, actor_of(self._kit), self._clean(reason)))
        told = self._trail.told(
            AuditType.QUARANTINE_RELEASED,
            workflow_id=report.workflow_id,
            facts=self._facts(report, reason),
        )
        self._check_writable(report.place)
        files: _Files = {report.report: encode_report(released), **self._unmarked(report)}
        self._trail.commit(told, files, {report.report: self._store.file(report.report)})
        return released

    def drop(self, name: str, reason: str) -> Quarantined:
        """Remove evidence for good; what is still damaged in the store stays unusable.

        Raises:
            CheckpointNotFoundError: nothing of that name was set aside.
            LegalHoldError: it has to stay.
        """
        check_id("reason", reason)
        report = report_or_remains(self._store, name)
        with self._trail.refusals(report.workflow_id or ""):
            Holds(self._kit, self._trail, Subjects(self._kit, self._trail)).check(
                workflow_id=report.workflow_id
            )
        self._check_writable(report.place)
        pieces = quarantine_files.bytes_of(self._store, report)
        files: _Files = {**dict.fromkeys((*pieces, report.report)), **self._unmarked(report)}
        told = self._trail.told(
            AuditType.QUARANTINE_DROPPED,
            workflow_id=report.workflow_id,
            facts=self._facts(report, reason),
        )
        self._trail.commit(told, files, {report.report: self._store.file(report.report)})
        return report

    # -- small questions ---------------------------------------------------------------------

    def _problem(self, workflow_id: str, sequence: int) -> CheckpointError | None:
        """Tell why the state of a checkpoint cannot be read."""

        def read() -> None:
            restored = self._restorer.restore(workflow_id, sequence)
            self._restorer.whole(restored)
            entry = entry_of(self._store, workflow_id, sequence)
            if entry is None or restored.checksum != entry.checksum:
                raise ChecksumMismatchError("the state is another checkpoint's")

        return problem_of(read)

    def _unmarked(self, report: Quarantined) -> _Files:
        """Take away what bars the checkpoint of a report, unless another report does."""
        if report.workflow_id is None or report.sequence is None:
            return {}
        mark = mark_name(report.workflow_id, report.sequence)
        return {mark: None} if self._store.file(mark) == f"{report.name}\n".encode() else {}

    def _facts(self, report: Quarantined, reason: str) -> dict[str, int | str]:
        """Name what was set aside, and why, in references that may stay for ever."""
        facts: dict[str, int | str] = {
            "quarantine": report.name,
            "evidence": f"sha256:{report.sha256}",
            "reason": self._clean(reason)[:FACT_CHARS_MAX],
        }
        if report.sequence is not None:
            facts["cp_seq"] = report.sequence
        if report.checksum is not None:
            facts["checksum"] = report.checksum
        return facts

    def _clean(self, text: str) -> str:
        return text if self._kit.redactor is None else self._kit.redactor.text(text)

    def _check_writable(self, place: str) -> None:
        if self._store.read_only:
            raise StoreReadOnlyError(
                "nothing can be set aside in a store that is open for reading; what is damaged stays unused",
                place=place,
                hint="Open it for writing to keep the evidence.",
            )

    def _repeated(self, attempt: Callable[[], Quarantined]) -> Quarantined:
        """Try again while others set aside the same."""
        for _ in range(_ATTEMPTS_MAX - 1):
            with suppress(CheckpointConflictError):
                return attempt()
        return attempt()
