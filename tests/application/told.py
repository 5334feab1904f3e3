"""Entries with their payloads, logs and pages, for the tests of reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

from holdfast.application.audit.audit_report import Reported, read_reported
from holdfast.domain.audit_entry import AuditEntry, TrailHead
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.log_check import LogReport, LogSource, verify_log
from holdfast.domain.merkle import leaf_hash
from holdfast.domain.payload import encode_payload
from holdfast.domain.tiles import TreeEdge
from holdfast.domain.trail import chain
from tests.trails import KEY_ONLY, signed_head

NOW = datetime(2026, 1, 11, 14, 30, tzinfo=UTC)
SALT = bytes(range(32))


def entry(
    number: int, type: str = AuditType.AGENT_DECISION, payload: Mapping[str, Any] | None = None, **more: Any
) -> AuditEntry:
    """Make an entry before it is committed; the clock moves a minute per number."""
    given: dict[str, Any] = {"workflow_id": "WF-1", "agent": "planner", "actor": "svc-7", **more}
    return AuditEntry(
        given.pop("timestamp", NOW + timedelta(minutes=number)),
        type,
        given.pop("session_id", "s-1"),
        stored=b"" if payload is None else encode_payload(payload, SALT),
        **given,
    )


@dataclass
class Told:
    """A small trail as a store would hold it."""

    lines: list[bytes] = field(default_factory=list)
    payloads: dict[tuple[str, int], bytes] = field(default_factory=dict)
    heads: dict[str, TrailHead] = field(default_factory=dict)

    def add(self, *entries: AuditEntry) -> Told:
        for record in chain(entries, lambda name: self.heads.get(name) or TrailHead(name)):
            self.heads[record.head.session_id] = record.head
            self.lines.append(record.data)
            if record.payload:
                self.payloads[record.head.session_id, record.head.seq] = record.payload
        return self

    def read_payload(self, session_id: str, seq: int) -> bytes | None:
        return self.payloads.get((session_id, seq))

    def reported(self) -> list[Reported]:
        return list(read_reported(self.lines, self.read_payload))

    def edge(self, size: int) -> TreeEdge:
        edge = TreeEdge()
        edge.append([leaf_hash(line) for line in self.lines[:size]])
        return edge

    def head(self, size: int) -> bytes:
        """Sign the tree of a size, without a witness."""
        return signed_head(size, self.edge(size).root(), witnessed=False)

    def verify(self, signed: int = 0, lines: Iterable[bytes] | None = None) -> LogReport:
        """Verify everything with the log's key; a head is there if a signed size is given."""
        heads = [self.head(signed)] if signed else []
        shown = self.lines if lines is None else lines
        return verify_log(LogSource(shown, heads=heads, read_payload=self.read_payload), KEY_ONLY)


def day_at_work() -> Told:
    """A trail with a bit of everything: ten entries after the start of the session."""
    decision = {
        "description": "ask two researchers",
        "rationale": "the offers differ in kind",
        "alternatives": ["ask three", "ask nobody"],
        "confidence": 0.9,
    }
    return Told().add(
        entry(1, AuditType.CHECKPOINT_CREATED, facts={"cp_seq": 1, "checksum": "sha256:" + "0" * 64}),
        entry(2, payload=decision),
        entry(3, AuditType.APPROVAL_REQUESTED, {"request": "sign the contract"}),
        entry(4, AuditType.APPROVAL_GRANTED, {"approver": "u-1", "reason": "within budget"}),
        entry(5, AuditType.STATE_RESTORED),
        entry(6, AuditType.STATE_READ),
        entry(7, AuditType.CHECKPOINTS_PRUNED, facts={"checkpoints": 3}),
        entry(8, AuditType.DATA_ERASED, {"reason": "asked for"}),
        entry(9, AuditType.OPERATION_REFUSED, outcome=Outcome.REFUSED, facts={"code": "lease_held"}),
        entry(10, AuditType.TRAIL_VERIFIED, timestamp=NOW - timedelta(days=10)),
    )


class Page(HTMLParser):
    """A page read by a parser that is not ours: its tags, its attributes, its text."""

    _VOID = frozenset({"meta", "br", "hr", "col"})

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.unbalanced: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self._VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


def check_page(page: Page) -> None:
    """Check what every page promises: whole, self-contained, inert, and named for those who listen."""
    assert page.unbalanced == [] and page.open == []
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "img", "link", "iframe", "object", "embed", "form", "base", "audio", "video"}
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") or name in ("src", "style") for name in attributes), tag
        assert not (attributes.get("href") or "#").startswith(("http", "//", "javascript", "data"))
    assert len(page.all("h1")) == 1 and page.all("html") == [{"lang": "en"}]
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(attributes.get("scope") for attributes in page.all("th"))
    assert all(attributes.get("aria-label") for attributes in page.all("svg"))
    targets = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    links = {(attributes.get("href") or "")[1:] for attributes in page.all("a")}
    assert {link for link in links if "/" not in link} <= targets
