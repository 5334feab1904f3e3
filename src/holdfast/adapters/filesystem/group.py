"""Commits that become durable together: what each of them does to the files, on top of those before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.adapters.filesystem.frame import Operation
from holdfast.adapters.filesystem.overlay import Files
from holdfast.adapters.filesystem.own_files import FileDraft
from holdfast.adapters.filesystem.trail_draft import TrailDraft
from holdfast.adapters.filesystem.trails import Session, Trails
from holdfast.adapters.filesystem.writer import Draft, Ends, Standing
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.errors import StateTooLargeError
from holdfast.domain.record import Commit


class Group:
    """The operations of one frame. Of a commit that is refused, none is among them."""

    def __init__(self, files: Files, ends: Ends, trails: Trails) -> None:
        self.draft = Draft(files, ends)
        self._trail = TrailDraft(self.draft, trails)
        self._files = files
        #: What became of each commit, in order; None: it is among them.
        self.outcomes: list[Exception | None] = []
        #: Where workflows stand after it, by what names them on the disk.
        self.standings: dict[str, Standing] = {}
        self._own: FileDraft | None = None

    @property
    def operations(self) -> list[Operation]:
        """What the group does to the files."""
        return self.draft.operations

    @property
    def _own_files(self) -> FileDraft:
        # Few groups do anything to files of the store itself.
        self._own = self._own or FileDraft(self._files)
        return self._own

    def do(self, operations: Iterable[Operation]) -> None:
        """Take operations into the group as they are."""
        self.draft.others.extend(operations)

    @property
    def sessions(self) -> dict[str, Session]:
        """Where the sessions it told of stand after it."""
        return self._trail.sessions

    def add(self, commit: Commit, standing: Standing | None, bytes_max: int) -> Standing | None:
        """Take a commit into the group; answers where its workflow stands after it, None if it has none."""
        if commit.files or commit.expected_files:
            self._own_files.check(commit)
        if standing is not None:
            self.draft.check(commit, standing)
        records = self._trail.chain(commit.audit)
        erasures = self._erasures(commit, bytes_max) if commit.erased else ()
        after = None if standing is None else self.draft.add(commit, standing)
        self._trail.add(records)
        if erasures:
            self.do(erasures)
        if commit.files:
            self.do(self._own_files.operations(commit.files))
        return after

    def _erasures(self, commit: Commit, bytes_max: int) -> list[Operation]:
        erasures = self._trail.erasures(commit.erased)
        if sum(len(erasure.data) for erasure in erasures) > bytes_max:
            raise StateTooLargeError(
                f"{len(erasures)} payloads cannot be erased at once",
                place=commit.erased[0][0],
                hint="Erase fewer of them with one commit.",
            )
        return erasures

    def must_be_apart(self, commit: Commit) -> bool:
        """Tell whether a commit takes something away for ever that could lie in the same frame."""
        return bool(commit.erased) or (bool(commit.files) and self._own_files.takes_keys_away(commit.files))

    def tell(self, audit: Sequence[AuditEntry]) -> None:
        """Take audit entries into the group."""
        self._trail.add(self._trail.chain(audit))
