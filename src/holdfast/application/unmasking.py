"""Showing what is masked in a state to somebody who may see it and says why: told before it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.application.audit.audit_log import AuditLog
from holdfast.application.insight.masks import Masks, sealed_paths
from holdfast.application.kit import Kit
from holdfast.application.revealing import Resolver, reveal
from holdfast.application.travel.travelling import Point
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointError, KeyUnavailableError
from holdfast.domain.pointer import look_up, parse_pointer, pointer_text
from holdfast.domain.tree import copy_tree

_IT = "it"


@dataclass(frozen=True, slots=True)
class Unmasked:
    """What a place of a state holds, with what was masked in it.

    Attributes:
        value: as a plain tree.
        filled: how many hidden secrets the resolver gave back.
        opened: how many values of people were opened with their keys.
        left: pointers to what stays masked.
    """

    value: Any
    filled: int
    opened: int
    left: tuple[str, ...]


def obstacles(kit: Kit, masks: Masks, *, has_resolver: bool) -> tuple[list[str], list[str]]:
    """Tell why nothing that is masked can be shown; and, where something can, what stays masked for sure."""
    if not masks.hidden and not masks.sealed:
        return ["nothing is masked there"], []
    missing = []
    if masks.hidden and not has_resolver:
        missing.append("nothing here gives hidden values back: name what does with --resolver")
    if masks.sealed and (kit.vault is None or kit.vault.is_locked):
        missing.append("there is no key here for the values of people: set encryption_key")
    can_show = bool(masks.hidden) + bool(masks.sealed) > len(missing)
    return ([], missing) if can_show else (missing, [])


def unmask(
    kit: Kit, audit: AuditLog, point: Point, pointer: str, resolver: Resolver | None = None
) -> Unmasked:
    """Answer what a place of a state holds, unmasked as far as it can be; durably told before.

    Raises:
        CheckpointNotFoundError: the state has no such place.
        ConfigError: the trail is switched off: what cannot be told is not shown.
        KeyUnavailableError: the resolver failed.
    """
    shown = _unmasked(kit, look_up(point.tree, parse_pointer(pointer)), pointer, resolver)
    counts = {"filled": shown.filled, "opened": shown.opened, "left": len(shown.left)}
    audit.log_event(
        AuditType.SECRET_REVEALED,
        workflow_id=point.workflow_id,
        facts={**point.facts, **counts},
        # A place may be called by somebody's name: it can be erased.
        payload={"pointer": pointer},
    )
    return shown


def _unmasked(kit: Kit, place: Any, pointer: str, resolver: Resolver | None) -> Unmasked:
    # What is looked at may itself be masked: it needs something around it that can be changed.
    box = {_IT: copy_tree(place)}
    opened, shut = _opened(kit, box)
    asked = None if resolver is None else _At(resolver, pointer)
    told = reveal(box, asked, kit.packer)
    left = [*told.left, *(pointer_text(path) for path in shut)]
    return Unmasked(box[_IT], told.filled, opened, tuple(_below(pointer, one) for one in left))


def _below(pointer: str, inner: str) -> str:
    return pointer + inner[len(_IT) + 1 :]


def _opened(kit: Kit, box: dict[str, Any]) -> tuple[int, list[list[str | int]]]:
    """Open the values of people in place; answer how many, and where others stay shut."""
    paths = sealed_paths(box)
    shut = []
    for path in paths:
        owner: Any = box
        for step in path[:-1]:
            owner = owner[step]
        sealed = owner[path[-1]]
        found = None
        if kit.vault is not None and not kit.vault.is_locked:
            found = kit.vault.open_personal(sealed["key"], sealed["v"])
        if found is None:
            shut.append(path)
        else:
            owner[path[-1]] = kit.packer.unpack(found[1])
    return len(paths) - len(shut), shut


class _At:
    """Asks a resolver by places of the whole state; what goes wrong in it is told without its words."""

    def __init__(self, resolver: Resolver, pointer: str) -> None:
        self._resolver = resolver
        self._pointer = pointer

    def __call__(self, inner: str, placeholder: str) -> Any:
        place = _below(self._pointer, inner)
        try:
            return self._resolver(place, placeholder)
        except CheckpointError:
            raise
        except Exception as problem:
            # Its words may hold what it looked for.
            raise KeyUnavailableError(
                f"the resolver failed ({type(problem).__name__})",
                place=place,
                hint="Let it answer None for what it does not know.",
            ) from None
