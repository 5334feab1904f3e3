"""Leases of workflows: one small file for each that ever had one, replaced through the journal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.adapters.filesystem import layout, quarantine
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import Kind, Operation
from holdfast.adapters.filesystem.manifest import ManifestDamaged, parse_line, summed_line
from holdfast.adapters.filesystem.overlay import Files
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.errors import CheckpointCorruptError
from holdfast.domain.lease import as_of, granted, is_current, refusal, renewed
from holdfast.domain.record import Commit, Lease
from holdfast.domain.time import parse_timestamp
from holdfast.domain.value import value
from holdfast.ports import Clock


@value
class LeaseFile:
    """What a lease file says: the last lease granted, and whether it was released."""

    #: None: the file is damaged.
    lease: Lease | None
    is_released: bool = False
    #: The bytes of a damaged file.
    wrong_bytes: bytes = b""

    def in_force(self, workflow_id: str) -> Lease | None:
        """The last lease granted and not released. Raises CheckpointCorruptError if that is unknown."""
        if self.lease is None:
            raise CheckpointCorruptError(
                "the lease file is damaged, so it is unknown who may write the workflow",
                place=layout.lease_path(workflow_id),
                hint="Acquire a lease: it fences off everybody before it, and the damaged file is kept.",
            )
        return None if self.is_released else self.lease


#: Decides under the append lock what becomes of a lease file; None leaves it.
Decide = Callable[[LeaseFile | None], Operation | None]
#: Makes durable what is decided, together with audit entries that tell of it.
Keep = Callable[[str, Decide, Sequence[AuditEntry]], None]


def read_lease(files: Files, workflow_id: str) -> LeaseFile | None:
    """Read a workflow's lease file; None if it never had a lease."""
    data = files.read(layout.lease_path(workflow_id))
    if data is None:
        return None
    file = parse(data)
    is_ours = file.lease is not None and file.lease.workflow_id == workflow_id
    return file if is_ours else LeaseFile(None, wrong_bytes=data)


def parse(data: bytes) -> LeaseFile:
    """Read the bytes of a lease file."""
    try:
        line = parse_line(data)
        parse_timestamp(line["expires_at"])
        lease = Lease(str(line["wf"]), str(line["owner"]), int(line["token"]), line["expires_at"])
        return LeaseFile(lease, bool(line["released"]))
    except (ManifestDamaged, CheckpointCorruptError, KeyError, TypeError, ValueError, RecursionError):
        return LeaseFile(None, wrong_bytes=data)


def fence(commit: Commit, file: LeaseFile | None, clock: Clock) -> None:
    """Raise why a commit must not be made under the lease that a file tells of."""
    lease = None if file is None else file.in_force(commit.workflow_id)
    if lease is not None and not commit.token:
        lease = as_of(lease, clock.now())
    refused = refusal(commit, lease)
    if refused is not None:
        raise refused


class Leases:
    """Grants, renews and ends leases. `keep` makes durable what is decided under the append lock."""

    def __init__(self, disk: Disk, clock: Clock, keep: Keep) -> None:
        self._disk = disk
        self._clock = clock
        self._keep = keep

    def acquire(
        self, workflow_id: str, owner: str, ttl_seconds: float, audit: Sequence[AuditEntry] = ()
    ) -> Lease:
        """Take a workflow for an owner, also where the file that says whose it is was damaged."""

        def decide(file: LeaseFile | None) -> Lease:
            now = self._clock.now()
            previous, last_token = None, 0
            if file is not None and file.lease is None:
                # The last token is lost. A count of microseconds is above all that were ever counted up.
                last_token = int(now.timestamp() * 1_000_000)
                self._set_aside(workflow_id, file.wrong_bytes)
            elif file is not None and file.lease is not None:
                last_token = file.lease.token
                previous = None if file.is_released else as_of(file.lease, now)
            return granted(workflow_id, owner, previous, last_token, now=now, ttl_seconds=ttl_seconds)

        return self._keep_new(workflow_id, decide, audit)

    def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
        """Give a lease new time."""

        def decide(file: LeaseFile | None) -> Lease:
            current = None if file is None else file.in_force(lease.workflow_id)
            return renewed(lease, current, now=self._clock.now(), ttl_seconds=ttl_seconds)

        return self._keep_new(lease.workflow_id, decide)

    def release(self, lease: Lease, audit: Sequence[AuditEntry] = ()) -> None:
        """End a lease, unless it is lost already. The file stays: tokens only grow."""

        def decide(file: LeaseFile | None) -> Operation | None:
            current = None if file is None else file.in_force(lease.workflow_id)
            if current is None or not is_current(lease, current):
                return None
            return _replacement(current, is_released=True)

        self._keep(lease.workflow_id, decide, audit)

    def _keep_new(
        self,
        workflow_id: str,
        decide: Callable[[LeaseFile | None], Lease],
        audit: Sequence[AuditEntry] = (),
    ) -> Lease:
        # Decided anew each time the journal has to be emptied first: the last time counts.
        decided: list[Lease] = []

        def replacement(file: LeaseFile | None) -> Operation:
            decided.append(decide(file))
            return _replacement(decided[-1])

        self._keep(workflow_id, replacement, audit)
        return decided[-1]

    def _set_aside(self, workflow_id: str, wrong_bytes: bytes) -> None:
        reason = "the lease file was not what was written"
        quarantine.set_aside(self._disk, layout.lease_path(workflow_id), reason, wrong_bytes)


def _replacement(lease: Lease, *, is_released: bool = False) -> Operation:
    fields = {
        "lease": 1,
        "wf": lease.workflow_id,
        "owner": lease.owner,
        "token": lease.token,
        "expires_at": lease.expires_at,
        "released": is_released,
    }
    return Operation(Kind.REPLACE, layout.lease_path(lease.workflow_id), 0, summed_line(fields))
