"""Opening the store that a call names, and finding in it what a person wrote."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast.cli.group import Call, did_you_mean
from holdfast.domain.errors import CheckpointNotFoundError

# Imported where they are used: help must not wait for codecs and threads.
if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.application.resolve import Found
    from holdfast.application.service import CheckpointService

_SETTINGS = "holdfast.json"


@contextmanager
def reading(call: Call) -> Iterator[Kit]:
    """Open the store for reading: no lock, nothing written, not even on a copy that is not ours."""
    from holdfast import bootstrap
    from holdfast.config import Config

    config = Config.load({"store": call.store})
    store = bootstrap.open_store(config, read_only=True, create=False)
    try:
        yield bootstrap.build_kit(store, config)
    finally:
        store.close()


@contextmanager
def writing(call: Call, *, create: bool = False) -> Iterator[CheckpointService]:
    """Open the store for changing it."""
    from holdfast import bootstrap

    with bootstrap.open(call.store, create=create) as service:
        yield service


def find(kit: Kit, text: str) -> Found:
    """Find the checkpoint that was written; where there is none, say what may have been meant."""
    from holdfast.application.resolve import resolve

    try:
        return resolve(kit.store, text)
    except CheckpointNotFoundError as error:
        hint = _meant_checkpoint(kit, text) or error.hint
        raise CheckpointNotFoundError(error.message, place=error.place, hint=hint) from None


def find_workflow(kit: Kit, text: str) -> str:
    """Answer a workflow's id if it is there; where it is not, say what may have been meant."""
    from holdfast.domain.ids import check_workflow_id

    check_workflow_id(text)
    if kit.store.head(text).sequence or any(kit.store.events(text)):
        return text
    hint = did_you_mean(text, kit.store.workflows()) or "See `holdfast list` for what is there."
    raise CheckpointNotFoundError("there is no such workflow", place=text, hint=hint)


def _meant_checkpoint(kit: Kit, text: str) -> str:
    from holdfast.application.resolve import living
    from holdfast.domain.ids import parse_ref

    workflow_id = parse_ref(text).workflow_id
    if not workflow_id:
        return ""
    if not kit.store.head(workflow_id).sequence:
        return did_you_mean(workflow_id, kit.store.workflows())
    kept = [entry.sequence for entry in living(kit.store, workflow_id)]
    return f"{workflow_id} has checkpoints {kept[-1]} to {kept[0]}." if kept else ""


def store_above(path: str) -> str | None:
    """Find the store that a file lies in by the settings file above it."""
    folder = os.path.dirname(os.path.abspath(path))
    while not os.path.isfile(os.path.join(folder, _SETTINGS)):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder
