"""Reports over one store: from its trail and settings to the files that `audit_report` and others write.

Nothing here writes into the store: whoever asks for a report tells so in the trail.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from holdfast.application.audit.audit_digest import digest
from holdfast.application.audit.audit_export import write_export
from holdfast.application.audit.audit_html import About, render_page
from holdfast.application.audit.audit_report import (
    PayloadOpener,
    Reported,
    folder_files,
    read_reported,
    to_csv,
    to_jsonl,
    write_bundle,
)
from holdfast.application.audit.evidence_controls import CONTROLS, Measure
from holdfast.application.audit.evidence_pack import Horizon, observe, write_pack
from holdfast.application.audit.log_keeping import LogKeeper
from holdfast.application.audit.processing_register import make_register, read_annotations
from holdfast.application.kit import Kit
from holdfast.application.secrecy.sealing import read_payload
from holdfast.application.trailing import actor_of
from holdfast.domain.errors import CheckpointNotFoundError, ConfigError
from holdfast.domain.keyring_file import KEYRING
from holdfast.domain.log_check import LogReport, LogSource, Trust, verify_log
from holdfast.domain.note import parse_note
from holdfast.domain.time import timestamp_text
from holdfast.domain.treehead import parse_head
from holdfast.ports import Signer

FORMATS = ("jsonl", "csv", "html")
_HOLDS = "holds/"


class Reports:
    """Makes reports on a store as it is."""

    def __init__(
        self, kit: Kit, keeper: LogKeeper, trust: Trust, open_payload: PayloadOpener | None = None
    ) -> None:
        """Take a store, its log, what may be believed about it, and what opens payloads, if not its keys."""
        self._kit = kit
        self._store = kit.store
        self._keeper = keeper
        self._trust = trust
        self._open_payload: PayloadOpener = open_payload or partial(read_payload, kit.vault)

    def entries(self, session_id: str | None = None) -> Iterator[Reported]:
        """Read the entries of a session, or all in the order of the tree, with their payloads.

        Raises:
            CheckpointNotFoundError: there is no such session.
        """
        store = self._store
        if session_id is None:
            lines: Iterable[bytes] = chain(store.leaves(), store.waiting())
        elif store.trail_head(session_id).seq:
            lines = store.trail(session_id)
        else:
            raise CheckpointNotFoundError("there is no such session", place=session_id)
        return read_reported(lines, store.payload, self._open_payload)

    def write(
        self, format: str, session_id: str | None = None, report: LogReport | None = None
    ) -> Iterator[bytes]:
        """Make a report piece by piece.

        Args:
            format: jsonl, csv or html.
            session_id: on this session only; else on everything.
            report: what the verification of the log found, for the page.

        Raises:
            ConfigError: there is no such format.
            CheckpointNotFoundError: there is no such session.
        """
        entries = self.entries(session_id)
        if format == "jsonl":
            return to_jsonl(entries)
        if format == "csv":
            return to_csv(entries)
        if format == "html":
            return iter([render_page(digest(entries), self._about(session_id), report).encode()])
        known = ", ".join((*FORMATS, "bundle"))
        raise ConfigError(f"there is no report as {format!r}", hint=f"Known are: {known}.")

    def bundle(self, target: IO[bytes], session_id: str, report: LogReport | None = None) -> bytes:
        """Write one zip file: the export of a session, the reports on it, and a signed statement.

        Args:
            target: a file opened for writing bytes.
            session_id: the session.
            report: what the verification of the log found, for the page.

        Returns:
            The listing of its files, as `sha256sum -c` reads it.
        """
        with tempfile.TemporaryDirectory(prefix="holdfast-bundle-") as folder:
            export = Path(folder) / "export"
            write_export(self._kit, export, session_id)
            files: dict[str, bytes | Path] = dict(folder_files(export, "export/"))
            for format in FORMATS:
                path = Path(folder) / f"report.{format}"
                with path.open("wb") as file:
                    file.writelines(self.write(format, session_id, report))
                files[path.name] = path
            about = (self._keeper.known_origin(), f"session {session_id}", self._store.integrate())
            return write_bundle(target, files, about, self._signer())

    def pack(self, folder: Path, at: int | None = None, frameworks: Collection[str] = ()) -> dict[str, Any]:
        """Write an evidence pack into a new or empty folder; answer its index.

        Args:
            folder: where to.
            at: how many entries count, from the first: a pack made before says it in its index. By default
                all there are now.
            frameworks: whose controls: `soc2`, `gdpr`, `ai-act`; all of them by default.

        Raises:
            ConfigError: the folder holds something already, or there are not so many entries.
        """
        horizon = self.horizon(at)
        if frameworks:
            chosen = tuple(control for control in CONTROLS if control.id.startswith(tuple(frameworks)))
            horizon = replace(horizon, controls=chosen)
        return write_pack(folder, horizon, self._signer())

    def register(self) -> dict[str, Any]:
        """Make the record of processing activities of the store as it is now."""
        store = self._store
        lines = chain(store.leaves(), store.waiting())
        return make_register(read_annotations(store), observe(lines, settings_of(self._kit)))

    def horizon(self, at: int | None = None) -> Horizon:
        """Look at the log up to a size."""
        store = self._store
        total = store.integrate()
        size = total if at is None else at
        if not 0 <= size <= total:
            raise ConfigError(f"the log has {total} entries, not {size}", place=store.url)
        heads = [head for head in self._keeper.heads() if _size_of(head) <= size]
        source = LogSource(islice(store.leaves(), size), heads=heads, read_payload=store.payload)
        newest = max(heads, key=_size_of, default=None)
        return Horizon(
            origin=self._keeper.known_origin(),
            size=size,
            lines=islice(store.leaves(), size),
            report=verify_log(source, self._trust),
            head=newest,
            hashes=None if newest is None else self._keeper.tiles.hashes(_size_of(newest)),
            keys=self._keys(),
            settings=settings_of(self._kit),
            annotations=read_annotations(store),
        )

    def _about(self, session_id: str | None) -> About:
        return About(
            scope="the whole store" if session_id is None else f"session {session_id}",
            store=self._store.url,
            made_at=timestamp_text(self._kit.clock.now()),
            made_by=actor_of(self._kit) or "",
            keys=self._keys(),
        )

    def _keys(self) -> tuple[str, ...]:
        return tuple(str(key) for key in (*self._trust.log_keys, *self._trust.witness_keys))

    def _signer(self) -> Signer | None:
        origin = self._keeper.known_origin()
        return self._kit.signing.signer(origin) if origin and self._kit.signing else None


def settings_of(kit: Kit) -> dict[str, Any]:
    """Tell how a store is set up, by topic, for packs and for the register."""
    rules = None if kit.retention is None else asdict(kit.retention)
    return {
        Measure.RETENTION: {
            "checkpoints": rules,
            "trail_days_min": kit.audit_retain_days,
            "trail_lines": "never removed",
        },
        Measure.ENCRYPTION: {"on": kit.store.file(KEYRING) is not None},
        Measure.REDACTION: {"on": kit.redactor is not None},
        Measure.RECORDING: {"on": kit.audit, "reads_refused_if_not_recorded": kit.strict_audit},
        Measure.HOLDS: {"standing": sum(1 for _ in kit.store.files(_HOLDS))},
    }


def _size_of(head: bytes) -> int:
    return parse_head(parse_note(head).text).size
