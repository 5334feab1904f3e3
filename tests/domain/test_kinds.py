"""Classes are recognised by their shape and come back without their constructors."""

from __future__ import annotations

import threading
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, cast

import msgspec
import pydantic
import pytest
from pydantic.dataclasses import dataclass as pydantic_dataclass

from holdfast.domain.errors import CheckpointSchemaError, UnstorableValueError, UnsupportedTypeError
from holdfast.domain.kinds import kind_of
from holdfast.domain.plain import TypeRegistry, to_plain
from tests.values import Point, Right, Ticket


def through(value: Any, *classes: type) -> Any:
    types = TypeRegistry()
    for cls in classes or (type(value),):
        types.register(cls)
    return types.revive(to_plain(value, types))


@dataclass
class Counted:
    start: int
    scale: InitVar[int] = 1
    total: int = field(init=False, default=0)

    def __post_init__(self, scale: int) -> None:
        self.total = self.start * scale


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow", populate_by_name=False)

    name: str = pydantic.Field(alias="Name")
    size: int = 1
    _secret: list[int] = pydantic.PrivateAttr(default_factory=list)


class Frozen(msgspec.Struct, frozen=True, kw_only=True):
    a: int
    b: Any = None


class Checked(msgspec.Struct):
    a: int

    def __post_init__(self) -> None:
        self.a += 1


class Halved(msgspec.Struct, frozen=True):
    left: int
    share: float = 0.0

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "share", 1 / self.left)


class Used(msgspec.Struct):
    left: int

    def __post_init__(self) -> None:
        if not self.left:
            raise ValueError("nothing is left")


@dataclass
class Job:
    name: str
    result: Any = field(init=False)
    tries: int = 0


@dataclass(slots=True)
class SlottedJob:
    name: str
    result: Any = field(init=False)
    tries: int = 0


class Spot(NamedTuple):
    x: int
    y: int = 2


class MarkedSpot(Spot):
    """Has room for attributes, as every class below a named tuple."""


@dataclass(frozen=True)
class Derived:
    a: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "double", 2 * self.a)

    @cached_property
    def lock(self) -> Any:
        return threading.Lock()


@pydantic_dataclass(config=pydantic.ConfigDict(extra="allow"))
class Open:
    a: int


class OpenStruct(msgspec.Struct, dict=True, frozen=True):
    a: int

    @cached_property
    def lock(self) -> Any:
        return threading.Lock()


class Noted:
    __slots__ = ("note",)


@dataclass(slots=True)
class SlottedBelow(Noted):
    a: int


@dataclass
class DictBelow(Noted):
    a: int


@dataclass
class Backed:
    size: int

    @property
    def twice(self) -> int:
        return 2 * self.size


def _set_size(self: Backed, size: int) -> None:
    self.__dict__["_held"] = 10 * size


# A field that a property stands for: what lies in the object is not what is read of it.
Backed.size = property(lambda self: self._held // 10, _set_size)  # type: ignore[assignment]


@dataclass(slots=True)
class Nothing:
    pass


@pytest.mark.parametrize("base", [dict, list, str, Exception])
def test_a_dataclass_over_something_that_holds_more_than_its_fields_is_not_recognised(base: type) -> None:
    assert kind_of(dataclass(type("Over", (base,), {"__annotations__": {"n": int}}))) is None


def test_a_dataclass_returns_its_fields_without_running_its_constructor() -> None:
    value = Counted(3, 5)
    value.total += 1
    assert through(value) == value


@pytest.mark.parametrize("cls", [Job, SlottedJob])
def test_a_field_that_nobody_has_set_returns_unset(cls: Any) -> None:
    back = through(cls("a", 2))
    assert (back.name, back.tries, hasattr(back, "result")) == ("a", 2, False)
    value = cls("a")
    value.result = (1,)
    assert through(value) == value


@pytest.mark.parametrize(
    ("value", "name"), [(Job("a"), "name"), (SlottedJob("a"), "tries"), (Checked(1), "a")]
)
def test_a_field_that_was_taken_away_is_refused_with_its_name_and_path(value: Any, name: str) -> None:
    delattr(value, name)
    with pytest.raises(UnstorableValueError, match=f"'{name}' of a {type(value).__name__}") as refused:
        through([{"job": value}], type(value))
    assert refused.value.place == "[0].job"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Derived(1), "double"),
        (Counted(1), "later"),
        (Counted(1), "_Counted__mangled"),
        (Open(1), "later"),
        (OpenStruct(1), "later"),
        (MarkedSpot(1), "later"),
        (SlottedBelow(1), "note"),
        (DictBelow(1), "note"),
        (DictBelow(1), "later"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_an_object_holds_beside_its_fields_returns_with_it(value: Any, name: str) -> None:
    if name == "note":
        value.note = {(1, 2)}
    else:
        value.__dict__[name] = {(1, 2)}
    back = through(value)
    assert back == value and type(back) is type(value)
    assert getattr(back, name) == {(1, 2)}
    assert getattr(back, "__dict__", None) == getattr(value, "__dict__", None)


def test_what_a_pydantic_dataclass_takes_beside_its_fields_returns() -> None:
    value = cast(Any, Open)(a=1, more=(2,))
    assert through(value).more == (2,)


@pytest.mark.parametrize("value", [Derived(1), OpenStruct(1)])
def test_what_is_computed_once_is_computed_again(value: Any) -> None:
    assert value.lock is value.lock
    back = through(value)
    assert back == value
    assert "lock" not in back.__dict__


def test_a_field_that_a_property_stands_for_returns_as_it_is_read() -> None:
    back = through(Backed(3))
    assert (back.size, back.twice, back.__dict__) == (3, 6, {"_held": 30})


@pytest.mark.parametrize("value", [Counted(1), Point(1, 2), Spot(1), Ticket(1), Nothing(), OpenStruct(1)])
def test_an_object_that_holds_nothing_else_is_stored_as_its_fields(value: Any) -> None:
    types = TypeRegistry()
    types.register(type(value))
    assert sorted(to_plain(value, types)) == ["$hf", "t", "v"]
    assert through(value) == value


def test_an_attribute_that_cannot_be_stored_is_refused_with_its_path() -> None:
    value = Counted(1)
    value.__dict__["_lock"] = threading.Lock()
    with pytest.raises(UnsupportedTypeError) as refused:
        through([{"agent": value}], Counted)
    assert refused.value.place == "[0].agent._lock"


def test_a_class_without_room_for_an_attribute_any_more_is_an_error() -> None:
    types = TypeRegistry()
    types.register(Nothing)
    with pytest.raises(CheckpointSchemaError, match="does not fit its class"):
        types.revive({"$hf": "obj", "t": "Nothing", "v": {}, "private": {"later": 1}})


def test_a_pydantic_model_returns_with_extras_private_parts_and_what_was_set() -> None:
    value = Model.model_validate({"Name": "a", "more": [1, (2,)]})
    value._secret.append(1)
    back = through(value)
    assert back == value
    assert back.model_fields_set == {"name", "more"}
    assert back.model_dump(exclude_unset=True) == value.model_dump(exclude_unset=True)
    assert back._secret == [1]


def test_a_root_model_returns() -> None:
    class Names(pydantic.RootModel[list[str]]):
        pass

    assert through(Names(["a"])) == Names(["a"])


def test_nested_models_return_with_their_classes() -> None:
    class Outer(pydantic.BaseModel):
        inner: Model

    value = Outer(inner=Model(Name="a"))
    back = through(value, Outer, Model)
    assert back == value
    assert type(back.inner) is Model


def test_structs_return_frozen_ones_and_those_with_hooks_too() -> None:
    assert through(Frozen(a=1, b=(2,))) == Frozen(a=1, b=(2,))
    assert through(Checked(1)).a == 2


def test_a_frozen_struct_whose_hook_changes_a_field_returns_as_it_was() -> None:
    value = Halved(4)
    msgspec.structs.force_setattr(value, "share", 0.5)
    assert through(value).share == 0.5


def test_a_struct_that_its_own_hook_refuses_says_so() -> None:
    value = Used(1)
    value.left = 0
    with pytest.raises(CheckpointSchemaError, match=r"__post_init__ of Used refuses.*nothing is left"):
        through(value)


def test_flags_return_by_value() -> None:
    assert through(Right.READ | Right.WRITE) == Right.READ | Right.WRITE
    assert through(Right(0)) == Right(0)


@pytest.mark.parametrize("members", [{"x": 1}, {"x": 1, "y": 2}])
def test_a_field_gained_since_is_filled_from_its_default(members: dict[str, Any]) -> None:
    types = TypeRegistry()
    types.register(Spot)
    assert types.revive({"$hf": "obj", "t": "Spot", "v": members}) == Spot(1, 2)


@pytest.mark.parametrize("cls", [Spot, Counted, Frozen])
def test_a_missing_or_unknown_field_is_an_error_that_names_it(cls: type) -> None:
    types = TypeRegistry()
    types.register(cls)
    with pytest.raises(CheckpointSchemaError):
        types.revive({"$hf": "obj", "t": cls.__name__, "v": {}})
    with pytest.raises(CheckpointSchemaError, match="'zzz'"):
        types.revive({"$hf": "obj", "t": cls.__name__, "v": {"zzz": 1, "x": 1, "start": 1, "a": 1}})


def test_a_pydantic_field_gained_since_is_filled_from_its_default() -> None:
    types = TypeRegistry()
    types.register(Model)
    assert types.revive({"$hf": "obj", "t": "Model", "v": {"name": "a"}}) == Model(Name="a")
    with pytest.raises(CheckpointSchemaError):
        types.revive({"$hf": "obj", "t": "Model", "v": {}})


def test_other_classes_are_not_recognised() -> None:
    assert kind_of(object) is None
    assert kind_of(str) is None
