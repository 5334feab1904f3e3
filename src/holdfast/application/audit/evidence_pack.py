"""An evidence pack: for each control what was asked of the trail, what was found, and the proof, in a folder.

A pack is made at a horizon, a size of the tree. What came later, the entries that making it causes included,
is not in it: the same horizon of an unchanged store gives the same bytes. No payload is in it either: entries
are named and proven, and what they tell of stays where it can be erased.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.application.audit.audit_report import (
    LISTING,
    STATEMENT,
    Reported,
    Statement,
    entry_fields,
    listing_of,
    report_fields,
    sign_statement,
)
from holdfast.application.audit.evidence_controls import CONTROLS, Control, Measure
from holdfast.application.audit.evidence_html import render_index
from holdfast.application.audit.processing_register import Observed, make_register, render_register
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType
from holdfast.domain.base64_text import to_base64
from holdfast.domain.errors import CheckpointWriteError, ConfigError
from holdfast.domain.log_check import Level, LogReport
from holdfast.domain.merkle import HashReader, inclusion_proof
from holdfast.domain.note import parse_note
from holdfast.domain.time import parse_timestamp, timestamp_text
from holdfast.domain.tlogproof import TlogProof
from holdfast.domain.trail import decode_entry
from holdfast.domain.treehead import parse_head
from holdfast.ports import Signer

#: Entries that a control shows, from each end; all are counted.
SHOWN_MAX = 25
LOG_DAYS_MIN = 183

README = """\
An evidence pack of a Holdfast store.

  index.html          to read and to print; index.json is the same for programs
  controls/           one file for each control: what is asked, the query, the result, the proof
  proofs/N.entry      the entry at leaf N of the tree, byte for byte as it is stored
  proofs/N.tlog-proof that it is there: index, hashes, signed head (C2SP tlog-proof)
  verification.json   what the verification of the whole log found, up to the horizon
  register.html       the record of processing activities; register.json is the same for programs
  checkpoint, vkeys   the signed head that the proofs lead to, and the public keys of the log
  SHA256SUMS          sums of all files: sha256sum -c SHA256SUMS
  statement.note      a signed note over the sum of SHA256SUMS, if the log has a key

Check a proof:  holdfast audit verify proofs/N.tlog-proof --key KEY
or with any other verifier of C2SP tlog-proof. Get the public key from somewhere else than from here.
"""


@dataclass(frozen=True, slots=True)
class Horizon:
    """The log up to a size, and what else a pack is made from.

    Attributes:
        origin: name of the log; empty if it has none yet.
        size: how many entries count, from the first.
        lines: these entries, in the order of the tree.
        report: what their verification found.
        head: the newest signed head that does not reach beyond them; None if there is none.
        hashes: reads hashes of the tree of that head.
        keys: public keys of the log.
        settings: how the store is set up, by `Measure`: retention, encryption, redaction, recording, holds.
        annotations: what the owner said about the processing; see `processing_register`.
        controls: what is asked.
    """

    origin: str
    size: int
    lines: Iterable[bytes]
    report: LogReport
    head: bytes | None = None
    hashes: HashReader | None = None
    keys: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, Any] = field(default_factory=dict)
    controls: tuple[Control, ...] = CONTROLS


@dataclass(slots=True)
class _Found:
    """The entries of one control: all counted, the first and the last kept, by their place in the tree."""

    total: int = 0
    types: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    first: list[tuple[int, AuditEntry, bytes]] = field(default_factory=list)
    last: list[tuple[int, AuditEntry, bytes]] = field(default_factory=list)

    def add(self, index: int, entry: AuditEntry, line: bytes) -> None:
        self.total += 1
        self.types[str(entry.type)] += 1
        self.outcomes[str(entry.outcome)] += 1
        kept = self.first if len(self.first) < SHOWN_MAX else self.last
        kept.append((index, entry, line))
        del self.last[:-SHOWN_MAX]

    @property
    def shown(self) -> list[tuple[int, AuditEntry, bytes]]:
        return [*self.first, *self.last]


@dataclass(slots=True)
class _Walk:
    """What one pass over the entries gives."""

    found: dict[str, _Found] = field(default_factory=dict)
    entries: int = 0
    sessions: set[str] = field(default_factory=set)
    workflows: set[str] = field(default_factory=set)
    clock_steps: int = 0
    first: str = ""
    last: str = ""


def write_pack(folder: Path, horizon: Horizon, signer: Signer | None = None) -> dict[str, Any]:
    """Write a pack into a new or empty folder; answer its index.

    Args:
        folder: where to.
        horizon: what it is made from.
        signer: signs the statement; None leaves it out.

    Raises:
        ConfigError: the folder holds something already.
        CheckpointWriteError: it cannot be written to.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError("the folder for the pack is not empty", place=str(folder), hint="Name a new one.")
    files, index = make_pack(horizon)
    listing = listing_of({name: hashlib.sha256(data).hexdigest() for name, data in files.items()})
    files[LISTING] = listing
    if signer is not None:
        digest = hashlib.sha256(listing).hexdigest()
        statement = Statement(signer.key.name, "evidence pack", horizon.size, digest)
        files[STATEMENT] = sign_statement(statement, signer)
    try:
        _write(folder, files)
    except OSError as fault:
        raise CheckpointWriteError(
            f"the pack cannot be written ({fault.strerror})", place=str(folder)
        ) from fault
    return index


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(0o600)
        path.write_bytes(data)


def make_pack(horizon: Horizon) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Make all files of a pack by name, and its index."""
    walk = _walk(horizon.lines, horizon.controls)
    register = make_register(horizon.annotations, _observed(walk, horizon.settings))
    measures = _measures(horizon, walk, register)
    prove = _prover(horizon)
    files: dict[str, bytes] = {}
    controls = []
    for control in horizon.controls:
        answer = _answer(control, walk.found[control.id], measures, horizon, prove, files)
        files[f"controls/{control.id}.json"] = _json(answer)
        controls.append(answer)
    index = _index(horizon, walk, controls)
    files |= {
        "README.txt": README.encode(),
        "index.json": _json(index),
        "index.html": render_index(index, controls, horizon.report, horizon.keys).encode(),
        "verification.json": _json(report_fields(horizon.report)),
        "register.json": _json(register),
        "register.html": render_register(register).encode(),
        "vkeys": "".join(f"{key}\n" for key in horizon.keys).encode(),
    }
    if horizon.head is not None:
        files["checkpoint"] = horizon.head
    return files, index


def observe(lines: Iterable[bytes], settings: Mapping[str, Any]) -> Observed:
    """Tell what a store itself says about the processing."""
    return _observed(_walk(lines, ()), settings)


def _observed(walk: _Walk, settings: Mapping[str, Any]) -> Observed:
    workflows, sessions = tuple(sorted(walk.workflows)), len(walk.sessions)
    return Observed(workflows, walk.entries, sessions, walk.first, walk.last, settings)


def _walk(lines: Iterable[bytes], controls: Iterable[Control]) -> _Walk:
    """Read every entry once and give it to the controls that ask for it."""
    walk = _Walk({control.id: _Found() for control in controls})
    asking = [(control.query, walk.found[control.id]) for control in controls if control.query is not None]
    for index, line in enumerate(lines):
        entry = decode_entry(line, None)
        moment = timestamp_text(entry.timestamp)
        walk.entries += 1
        walk.first = min(walk.first or moment, moment)
        walk.last = max(walk.last, moment)
        walk.clock_steps += entry.clock is not None
        walk.sessions.add(entry.session_id)
        # Who reads may ask for a workflow that never was.
        if entry.workflow_id is not None and entry.type != AuditType.TRAIL_READ:
            walk.workflows.add(entry.workflow_id)
        for query, found in asking:
            if query.matches(str(entry.type), str(entry.outcome)):
                found.add(index, entry, line)
    return walk


Prove = Callable[[int], bytes | None]


def _prover(horizon: Horizon) -> Prove:
    """Make what proves an entry by its index; None where no signed head covers it."""
    head, hashes = horizon.head, horizon.hashes
    if head is None or hashes is None:
        return lambda index: None
    size = parse_head(parse_note(head).text).size

    def prove(index: int) -> bytes | None:
        if index >= size:
            return None
        return TlogProof(index, inclusion_proof(index, size, hashes), head).encode()

    return prove


def _answer(
    control: Control,
    found: _Found,
    measures: Mapping[str, Any],
    horizon: Horizon,
    prove: Prove,
    files: dict[str, bytes],
) -> dict[str, Any]:
    """Put together what a control's file says; proofs go into files of their own, each once."""
    shown = []
    for index, entry, line in found.shown:
        name = f"proofs/{index:012d}"
        proof = prove(index)
        files[f"{name}.entry"] = line
        if proof is not None:
            files[f"{name}.tlog-proof"] = proof
        shown.append(_shown(index, entry, name, is_proven=proof is not None))
    told = {str(measure): measures[measure] for measure in control.measures}
    return {
        "control": control.id,
        "framework": control.framework,
        "clause": control.clause,
        "title": control.title,
        "asks": control.asks,
        "query": None if control.query is None else _query(control, horizon.size),
        "result": {
            "entries": found.total,
            "by_type": dict(sorted(found.types.items())),
            "by_outcome": dict(sorted(found.outcomes.items())),
            "measures": told,
        },
        "attention": _attention(control, told),
        "shown": shown,
        "left_out": found.total - len(shown),
    }


def _query(control: Control, size: int) -> dict[str, Any]:
    query = control.query
    types, outcomes = (query.types, query.outcomes) if query else ((), ())
    return {"types": list(types), "outcomes": list(outcomes), "leaves_before": size}


def _shown(index: int, entry: AuditEntry, name: str, *, is_proven: bool) -> dict[str, Any]:
    fields = entry_fields(entry)
    kept = ("ts", "type", "outcome", "workflow", "agent", "actor", "correlation", "hash")
    return {
        "entry": Reported(entry).reference,
        "leaf": index,
        **{key: fields[key] for key in kept if key in fields},
        "line": f"{name}.entry",
        "proof": f"{name}.tlog-proof" if is_proven else None,
    }


def _measures(horizon: Horizon, walk: _Walk, register: Mapping[str, Any]) -> dict[str, Any]:
    settings, report = horizon.settings, horizon.report
    days = (parse_timestamp(walk.last) - parse_timestamp(walk.first)).days if walk.entries else 0
    return {
        Measure.TRAIL: {
            "entries": walk.entries,
            "sessions": len(walk.sessions),
            "workflows": len(walk.workflows),
            "first_entry": walk.first,
            "last_entry": walk.last,
            "days": days,
            "clock_steps": walk.clock_steps,
        },
        Measure.VERIFICATION: {
            "verdict": str(report.verdict()),
            "level": report.level.label,
            "faults": report.fault_count,
            "first_fault": str(report.first_fault) if report.first_fault else None,
            "signed_entries": report.signed_size,
            "witnessed_entries": report.witnessed_size,
            "unanchored_tail": report.tail,
        },
        Measure.SIGNING: {"log": horizon.origin or None, "keys": list(horizon.keys), "heads": report.heads},
        Measure.REGISTER: {
            "activities": len(register["activities"]),
            "missing": register["missing"],
            "file": "register.html",
        },
        **{
            measure: dict(settings.get(measure, {}))
            for measure in (
                Measure.RETENTION,
                Measure.ENCRYPTION,
                Measure.REDACTION,
                Measure.RECORDING,
                Measure.HOLDS,
            )
        },
    }


def _attention(control: Control, told: Mapping[str, Any]) -> list[str]:
    """Say what a reader should not overlook; nobody judges here whether it is allowed."""
    warnings = []
    verification = told.get(Measure.VERIFICATION, {})
    if verification.get("faults"):
        warnings.append(f"the verification failed: {verification['first_fault']}")
    if verification and verification["level"] in (Level.NONE.label, Level.CHAIN.label):
        warnings.append("no signed head was checked")
    if verification.get("unanchored_tail") and verification.get("signed_entries"):
        tail = verification["unanchored_tail"]
        are = "1 entry is" if tail == 1 else f"{tail} entries are"
        warnings.append(f"{are} not covered by a signed head")
    for measure in (Measure.ENCRYPTION, Measure.REDACTION, Measure.RECORDING):
        if measure in told and not told[measure].get("on"):
            warnings.append(f"{measure} is off")
    if told.get(Measure.REGISTER, {}).get("missing"):
        warnings.append(f"not stated: {', '.join(told[Measure.REGISTER]['missing'])}")
    trail_days = told.get(Measure.RETENTION, {}).get("trail_days_min")
    if control.id == "ai-act-art19" and trail_days is not None and trail_days < LOG_DAYS_MIN:
        warnings.append(f"the trail is kept for {trail_days} days, less than {LOG_DAYS_MIN}")
    return warnings


def _index(horizon: Horizon, walk: _Walk, controls: list[dict[str, Any]]) -> dict[str, Any]:
    head = horizon.report.head
    return {
        "format": "holdfast-evidence-pack/v1",
        "log": horizon.origin or None,
        "horizon": {
            "size": horizon.size,
            "root": to_base64(head.root),
            "last_entry": walk.last or None,
        },
        "verification": "verification.json",
        "register": "register.json",
        "controls": [
            {
                "control": answer["control"],
                "framework": answer["framework"],
                "clause": answer["clause"],
                "title": answer["title"],
                "entries": answer["result"]["entries"],
                "attention": answer["attention"],
                "file": f"controls/{answer['control']}.json",
            }
            for answer in controls
        ],
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n"
