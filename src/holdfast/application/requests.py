"""The mailbox of each workflow: requests to whoever runs it, left by those who may not write its journal."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from holdfast.application.kit import Kit
from holdfast.application.resolve import known_head
from holdfast.application.trailing import Trail, actor_of
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointSchemaError,
    InvalidStateError,
    StoreDamageWarning,
)
from holdfast.domain.ids import check_id, check_workflow_id
from holdfast.domain.request import (
    FOLDER,
    Request,
    RequestKind,
    decode_request,
    encode_request,
    folder_of,
    id_of_file,
)
from holdfast.domain.tree import has_tags
from holdfast.ports import Store


class Requests:
    """Takes requests in, and gives them to the owners of workflows."""

    def __init__(self, kit: Kit, trail: Trail) -> None:
        self._kit = kit
        self._trail = trail

    def put(
        self,
        workflow_id: str,
        kind: RequestKind | str,
        *,
        actor: str | None = None,
        reason: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> Request:
        """Ask something of a workflow, durably, and tell so in the trail.

        Args:
            workflow_id: whom to ask, running or not.
            kind: what for.
            actor: who asks; whoever opened the store by default.
            reason: why, in words.
            data: what else the owner has to know; an approval says by `granted` whether it is.

        Raises:
            CheckpointNotFoundError: there is no such workflow.
            InvalidIdError: a name is none, or looks like a credential.
            InvalidStateError: there is no such kind, or an approval does not say whether it is granted.
            StateTooLargeError: it is no small message.
        """
        known_head(self._kit.store, workflow_id)
        request = self._hidden(
            Request(
                self._kit.ids.new(),
                workflow_id,
                _kind(kind),
                actor_of(self._kit) if actor is None else check_id("actor", actor),
                self._kit.clock.now(),
                reason,
                self._kit.packer.unpack(self._kit.packer.pack(dict(data or {}))),
            )
        )
        # Written first of all: it may make a key, which is told before this and has to be earlier.
        stored = self._sealed(request)
        self._trail.commit(self._told(request), {request.file: stored}, {request.file: None})
        return self._revived(request)

    def pending(self, workflow_id: str | None = None) -> list[Request]:
        """Answer the requests that wait, the oldest first; of all workflows if none is named.

        One that is damaged is warned about, and hides no other.
        """
        prefix = FOLDER if workflow_id is None else folder_of(check_workflow_id(workflow_id))
        found = sorted(self._read(prefix), key=lambda one: (one.requested_at, one.id))
        # Two workflows may have one hash.
        return [one for one in found if workflow_id in (None, one.workflow_id)]

    def settle(self, request_ids: Iterable[str]) -> None:
        """Take away requests that were carried out; one that is gone already is no error."""
        done = set(request_ids)
        names = [name for name in self._kit.store.files(FOLDER) if id_of_file(name) in done] if done else []
        if names:
            self._trail.commit((), dict.fromkeys(names))

    def _read(self, prefix: str) -> Iterator[Request]:
        store, vault = self._kit.store, self._kit.vault
        for name in store.files(prefix):
            data = store.file(name)
            if data is None:
                # Carried out since it was listed.
                continue
            try:
                line = data if vault is None else vault.open_file(name, data)
                yield self._revived(decode_request(line, name))
            except (CheckpointCorruptError, CheckpointSchemaError) as problem:
                warnings.warn(f"{name}: {problem.message}", StoreDamageWarning, stacklevel=3)

    def _hidden(self, request: Request) -> Request:
        """Hide the secrets of a request; names that hold one are refused."""
        redactor = self._kit.redactor
        if redactor is None:
            return request
        redactor.check_names(workflow_id=request.workflow_id, actor=request.actor)
        reason = None if request.reason is None else redactor.text(request.reason)
        return replace(request, reason=reason, data=redactor.tree(dict(request.data)))

    def _sealed(self, request: Request) -> bytes:
        line, vault = encode_request(request), self._kit.vault
        return line if vault is None else vault.seal_file(request.file, line)

    def _told(self, request: Request) -> tuple[AuditEntry, ...]:
        """Tell who asked for what; why is in the payload, which can be erased."""
        entries = self._trail.told(
            request.audit_type,
            workflow_id=request.workflow_id,
            facts={"request": request.id, "kind": str(request.kind)},
            payload=_particulars(request),
        )
        return tuple(replace(entry, actor=request.actor) for entry in entries)

    def _revived(self, request: Request) -> Request:
        if not has_tags(request.data):
            return request
        return replace(request, data=self._kit.registry.revive(request.data))


def request_files(store: Store, workflow_id: str) -> Iterator[str]:
    """Name the files of everything that is asked of a workflow."""
    return store.files(folder_of(workflow_id))


def _particulars(request: Request) -> dict[str, Any] | None:
    """Answer what a request says beside what it is; None if that is nothing."""
    reason = {} if request.reason is None else {"reason": request.reason}
    return {**reason, "data": dict(request.data)} if request.data else reason or None


def _kind(kind: RequestKind | str) -> RequestKind:
    try:
        return RequestKind(kind)
    except ValueError:
        raise InvalidStateError(
            f"{kind!r} is nothing that can be asked for", hint=f"Use one of {', '.join(RequestKind)}."
        ) from None
