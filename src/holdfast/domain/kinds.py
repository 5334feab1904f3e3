"""How values of an application's own classes are taken apart and put together again.

Classes are recognised by their shape, so no modelling library is imported here. Objects come back without
running their constructors where the library allows it: what was stored is what returns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from enum import Enum, Flag
from functools import cached_property, partial
from types import MemberDescriptorType
from typing import Any

from holdfast.domain.errors import CheckpointSchemaError, UnstorableValueError
from holdfast.domain.value import value


@value
class Kind:
    """How one class is stored: `take` gives the members of its tag, `put` gets them back, revived."""

    take: Callable[[Any], dict[str, Any]]
    put: Callable[[Mapping[str, Any]], Any]
    tag: str = "obj"


def kind_of(cls: type) -> Kind | None:
    """Recognise an enum, dataclass, named tuple, pydantic model or msgspec struct; None for others."""
    if issubclass(cls, Enum):
        return _enum(cls)
    if hasattr(cls, "__pydantic_fields_set__") or hasattr(cls, "model_fields"):
        return _model(cls)
    if dataclasses.is_dataclass(cls):
        return _dataclass(cls) if _is_made_of_fields(cls) else None
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _named_tuple(cls)
    return _struct(cls) if hasattr(cls, "__struct_fields__") else None


def custom(encode: Callable[[Any], Any], decode: Callable[[Any], Any]) -> Kind:
    """Store what `encode` returns and revive with `decode`."""
    return Kind(lambda value: {"v": encode(value)}, lambda members: decode(members["v"]))


def _given(value: Any) -> Any:
    return value


def _enum(cls: type[Enum]) -> Kind:
    if issubclass(cls, Flag):
        # Combined flags have no name of their own.
        return Kind(lambda member: {"v": member.value}, lambda members: cls(members["v"]), "enum")
    return Kind(lambda member: {"v": member.name}, lambda members: cls[members["v"]], "enum")


def _is_made_of_fields(cls: type) -> bool:
    """Tell whether a class holds nothing beside its fields: one over `dict` or `Exception` holds more."""
    return all(base is object for base in cls.__mro__ if base.__module__ == "builtins")


def _dataclass(cls: type) -> Kind:
    fields = dataclasses.fields(cls)
    names = [field.name for field in fields]
    missing: dict[str, Callable[[], Any]] = {
        field.name: field.default_factory
        if field.default_factory is not dataclasses.MISSING
        else partial(_given, field.default)
        for field in fields
        if field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    }
    # Nobody sets these when an object is made, so one may never have been.
    unset = {field.name for field in fields if not field.init and field.name not in missing}

    def put(members: Mapping[str, Any]) -> Any:
        value: Any = object.__new__(cls)
        for name, stored in _complete(cls, members["v"], names, missing, unset).items():
            object.__setattr__(value, name, stored)
        return _put_beside(value, members)

    return Kind(_by_dict(cls, names, _with_beside(cls, names, _taking(names, unset))), put)


def _named_tuple(cls: Any) -> Kind:
    names = list(cls._fields)
    missing = {name: partial(_given, value) for name, value in cls._field_defaults.items()}

    def put(members: Mapping[str, Any]) -> Any:
        values = _complete(cls, members["v"], names, missing)
        return _put_beside(tuple.__new__(cls, [values[name] for name in names]), members)

    return Kind(_with_beside(cls, names, lambda value: {"v": dict(zip(names, value, strict=True))}), put)


def _model(cls: Any) -> Kind:
    fields = cls.model_fields
    names = list(fields)
    missing = {
        name: partial(field.get_default, call_default_factory=True)
        for name, field in fields.items()
        if not field.is_required()
    }

    def take(value: Any) -> dict[str, Any]:
        stored = dict(value.__dict__)
        members: dict[str, Any] = {"v": {name: stored[name] for name in names if name in stored}}
        members["v"].update(value.__pydantic_extra__ or {})
        given = value.__pydantic_fields_set__
        if len(given) < len(members["v"]):
            members["set"] = [name for name in members["v"] if name in given]
        if value.__pydantic_private__ is not None:
            members["private"] = dict(value.__pydantic_private__)
        return members

    def put(members: Mapping[str, Any]) -> Any:
        stored, allowed = members["v"], cls.model_config.get("extra") == "allow"
        extra = {name: stored[name] for name in stored if name not in fields} if allowed else None
        known = {name: stored[name] for name in stored if name not in (extra or ())}
        value = cls.__new__(cls)
        object.__setattr__(value, "__dict__", _complete(cls, known, names, missing))
        object.__setattr__(value, "__pydantic_fields_set__", set(members.get("set", stored)))
        object.__setattr__(value, "__pydantic_extra__", extra)
        object.__setattr__(value, "__pydantic_private__", members.get("private", _private_defaults(cls)))
        return value

    return Kind(take, put)


def _private_defaults(cls: Any) -> dict[str, Any] | None:
    """Give what a model's private attributes are before anyone sets them; None if it has none."""
    if not cls.__private_attributes__:
        return None
    made = {
        name: attribute.default_factory() if attribute.default_factory else deepcopy(attribute.default)
        for name, attribute in cls.__private_attributes__.items()
    }
    return {name: value for name, value in made.items() if type(value).__name__ != "PydanticUndefinedType"}


def _struct(cls: Any) -> Kind:
    names = list(cls.__struct_fields__)

    def put(members: Mapping[str, Any]) -> Any:
        stored = members["v"]
        _refuse_unknown(cls, stored, names)
        value = _made(cls, stored, names)
        # A post-init hook may have changed what was stored.
        for name in stored:
            if getattr(value, name) is not stored[name]:
                # By its member: a frozen struct refuses to have an attribute set.
                getattr(cls, name).__set__(value, stored[name])
        return _put_beside(value, members)

    return Kind(_with_beside(cls, names, _taking(names)), put)


def _made(cls: Any, stored: Mapping[str, Any], names: list[str]) -> Any:
    """Make a struct, which msgspec does by running its post-init hook and in no other way."""
    try:
        return cls(**stored)
    except Exception as fault:
        if len(stored) < len(names):
            # The class has gained fields: nobody knows whether those or its hook raised.
            raise
        raise CheckpointSchemaError(
            f"the __post_init__ of {cls.__qualname__} refuses what was stored ({fault!r})",
            hint="Let the hook accept all that its fields may get, or register the class with functions.",
        ) from fault


def _taking(names: list[str], unset: Collection[str] = ()) -> Callable[[Any], dict[str, Any]]:
    """Make what takes the fields of a value; those of `unset` may have none."""

    def take(value: Any) -> dict[str, Any]:
        try:
            return {"v": {name: getattr(value, name) for name in names}}
        except AttributeError:
            # A loop that asks each time costs everybody; hardly ever is a field not set.
            return {"v": _set_fields(value, names, unset)}

    return take


def _set_fields(value: Any, names: list[str], unset: Collection[str]) -> dict[str, Any]:
    held = {}
    for name in names:
        try:
            held[name] = getattr(value, name)
        except AttributeError:
            if name not in unset:
                raise UnstorableValueError(
                    f"the field {name!r} of a {type(value).__qualname__} is not set",
                    hint="Set it before it is stored; one that may stay unset is declared with "
                    "field(init=False), without a default.",
                ) from None
    return held


def _with_beside(
    cls: type, names: list[str], take: Callable[[Any], dict[str, Any]]
) -> Callable[[Any], dict[str, Any]]:
    """Let what takes the fields take what a value holds beside them, if it can hold anything there."""
    members = _members_of(cls)
    cached = {name for name, member in members.items() if isinstance(member, cached_property)}
    known = frozenset((*names, *cached))
    slots = [
        name
        for name, member in members.items()
        if _is_slot(member) and name not in known and not _is_dunder(name)
    ]
    if not slots and not cls.__dictoffset__:
        return take

    def take_all(value: Any) -> dict[str, Any]:
        taken = take(value)
        held = getattr(value, "__dict__", None)
        if slots or (held and not held.keys() <= known):
            beside = {name: getattr(value, name) for name in slots if hasattr(value, name)}
            beside |= {
                name: inner
                for name, inner in dict(held or ()).items()
                if name not in known and not _is_dunder(name)
            }
            if beside:
                taken["private"] = beside
        return taken

    return take_all


def _by_dict(
    cls: type, names: list[str], take: Callable[[Any], dict[str, Any]]
) -> Callable[[Any], dict[str, Any]]:
    """Take a value that holds its fields and nothing else in one go, which is what most of them do."""
    members = _members_of(cls)
    is_ruled = any(hasattr(members.get(name), "__set__") for name in names)
    is_in_dict = cls.__dictoffset__ and not any(map(_is_slot, members.values()))
    if is_ruled or not is_in_dict or members["__getattribute__"] is not object.__getattribute__:
        # What reading a field gives may not be what lies under its name.
        return take

    def take_at_once(value: Any) -> dict[str, Any]:
        held = value.__dict__.copy()
        return {"v": held} if list(held) == names else take(value)

    return take_at_once


def _put_beside(value: Any, members: Mapping[str, Any]) -> Any:
    """Give a value back what it held beside its fields."""
    if "private" in members:
        slots = _members_of(type(value))
        for name, stored in members["private"].items():
            if _is_slot(slots.get(name)):
                slots[name].__set__(value, stored)
            else:
                # Past the class: a frozen one refuses to have an attribute set.
                value.__dict__[name] = stored
    return value


def _members_of(cls: type) -> dict[str, Any]:
    """Give what a class and those above it define, by name: of several, what counts."""
    return {name: member for base in reversed(cls.__mro__) for name, member in vars(base).items()}


def _is_slot(member: Any) -> bool:
    return isinstance(member, MemberDescriptorType)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _complete(
    cls: type,
    stored: Mapping[str, Any],
    names: list[str],
    missing: Mapping[str, Callable[[], Any]],
    unset: Collection[str] = (),
) -> dict[str, Any]:
    """Order stored fields as the class does and fill those it has gained since from their defaults."""
    _refuse_unknown(cls, stored, names)
    values = {}
    for name in names:
        if name in stored:
            values[name] = stored[name]
        elif name in missing:
            values[name] = missing[name]()
        elif name not in unset:
            raise _changed(cls, f"has a field {name!r} that the stored value lacks")
    return values


def _refuse_unknown(cls: type, stored: Mapping[str, Any], names: list[str]) -> None:
    unknown = [name for name in stored if name not in names]
    if unknown:
        raise _changed(cls, f"has no field {unknown[0]!r}, which the stored value carries")


def _changed(cls: type, problem: str) -> CheckpointSchemaError:
    return CheckpointSchemaError(
        f"{cls.__qualname__} {problem}",
        hint="Give the field a default, or register the class with a decode function for old values.",
    )
