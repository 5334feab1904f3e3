"""Having a workflow for oneself while it is recovered: of two who try at once, one wins."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from holdfast.application.kit import Kit
from holdfast.application.recovery.owners import is_dead, own_name
from holdfast.application.trailing import Trail
from holdfast.application.writer import Writer
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointError, LeaseHeldError, LeaseLostError
from holdfast.domain.record import Lease
from holdfast.domain.time import parse_timestamp

#: How long others wait at most after the recovering machine died; the lease is renewed while work goes on.
LEASE_SECONDS = 30.0
_RENEWALS_PER_LEASE = 3
_KEPT_SECONDS_MAX = 24 * 3600.0
_LOG = logging.getLogger("holdfast")


@dataclass(slots=True)
class Claim:
    """A workflow that is ours, and whether it still is."""

    workflow_id: str
    thread: int = field(default_factory=threading.get_ident)
    notes: list[str] = field(default_factory=list)
    #: Has to be given up at the end.
    lease: Lease | None = None
    #: Set once the work under the claim is over, or has to stop because the workflow was lost.
    is_over: threading.Event = field(default_factory=threading.Event)


class Claims:
    """Takes workflows, renews the leases while they are worked on, and gives them up."""

    def __init__(
        self, kit: Kit, trail: Trail, writer: Writer, *, lease_seconds: float = LEASE_SECONDS
    ) -> None:
        self._kit = kit
        self._trail = trail
        self._writer = writer
        self._lease_seconds = lease_seconds
        self._mutex = threading.Lock()
        self._claims: dict[str, Claim] = {}

    @contextmanager
    def alone(self, workflow_id: str) -> Iterator[Claim]:
        """Keep everybody else from the workflow meanwhile, other threads of this process included.

        A lease that was acquired here before serves as well, and is not given up at the end.

        Raises:
            LeaseHeldError: somebody else has it, and may be alive.
            LeaseLostError: it was acquired here before, and lost since.
        """
        claim = Claim(workflow_id)
        with self._mutex:
            known = self._claims.setdefault(workflow_id, claim)
        if known is not claim:
            if known.thread != claim.thread:
                raise LeaseHeldError(
                    "another thread of this process recovers the workflow at this moment",
                    place=workflow_id,
                    hint="Wait for its outcome.",
                )
            yield known
            return
        try:
            with self._leased(claim):
                yield claim
        finally:
            with self._mutex:
                del self._claims[workflow_id]

    @contextmanager
    def _leased(self, claim: Claim) -> Iterator[None]:
        lease = self._writer.lease_held(claim.workflow_id)
        if lease is None:
            lease = claim.lease = self._acquired(claim)
        else:
            lease = self._long_enough(lease)
        try:
            with self._renewed(lease, claim):
                yield
        finally:
            self._give_up(claim)

    def close(self) -> None:
        """Give up what is still worked on: who is left behind by the end can record nothing more."""
        with self._mutex:
            claims = list(self._claims.values())
        for claim in claims:
            claim.is_over.set()
            self._give_up(claim)

    @contextmanager
    def _renewed(self, lease: Lease, claim: Claim) -> Iterator[None]:
        renewing = threading.Thread(
            target=self._renew, args=(lease, claim), name="holdfast-lease", daemon=True
        )
        renewing.start()
        try:
            yield
        finally:
            claim.is_over.set()
            renewing.join()

    def _acquired(self, claim: Claim) -> Lease:
        self._bury(claim)
        owner = own_name(f"recovery-{secrets.token_hex(4)}")
        return self._writer.acquire(claim.workflow_id, owner, self._lease_seconds)

    def _renew(self, lease: Lease, claim: Claim) -> None:
        """Keep a lease alive until the work is over, or the lease lost."""
        pause_seconds = self._lease_seconds / _RENEWALS_PER_LEASE
        while not claim.is_over.wait(pause_seconds):
            try:
                self._prolonged(lease)
            except LeaseLostError:
                claim.is_over.set()
            except CheckpointError:
                # The store may be back for the next one; if not, the lease is over by itself.
                continue

    def _long_enough(self, lease: Lease) -> Lease:
        """Renew a lease that was acquired before if it may be over before the next renewal."""
        is_enough = lease.is_live and self._left_seconds(lease) >= self._lease_seconds
        return lease if is_enough else self._prolonged(lease)

    def _prolonged(self, lease: Lease) -> Lease:
        """Renew a lease; one that was given more time keeps it."""
        kept_seconds = min(self._left_seconds(lease), _KEPT_SECONDS_MAX)
        return self._kit.store.renew(lease, max(self._lease_seconds, kept_seconds))

    def _left_seconds(self, lease: Lease) -> float:
        """Tell how much time a lease has, as far as the clock here can be believed."""
        return (parse_timestamp(lease.expires_at) - self._kit.clock.now()).total_seconds()

    def _give_up(self, claim: Claim) -> None:
        with self._mutex:
            lease, claim.lease = claim.lease, None
        if lease is None:
            return
        try:
            self._writer.release(lease)
        except CheckpointError as problem:
            # What was done under it is done; the lease is over by itself before long.
            _LOG.warning("the lease of %s was not given up: %s", lease.workflow_id, problem)

    def _bury(self, claim: Claim) -> None:
        """End the lease of an owner that is certainly dead: nobody need wait for it to expire."""
        lease = self._kit.store.lease(claim.workflow_id)
        if lease is None or not lease.is_live or not is_dead(lease.owner):
            return
        facts: dict[str, int | str] = {"owner": lease.owner, "token": lease.token}
        told = self._trail.told(AuditType.LEASE_RELEASED, workflow_id=claim.workflow_id, facts=facts)
        self._kit.store.release(lease, told)
        claim.notes.append(f"the process that had the workflow is dead; its lease ({lease.owner}) was ended")
