"""Fields that the annotated type does not declare: an object's own are refused, and those of a dict are named."""

import dataclasses
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import pytest
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    model_validator,
)
from typing_extensions import TypedDict

from engine.values.errors import InvalidValueError
from engine.values.serialization import Codec

T = TypeVar("T")
WHAT = 'output of step "x"'


class Animal(BaseModel):
    model_config = ConfigDict(frozen=True)
    name: str = "Rex"


class Dog(Animal):
    tail: int = 3


class Puppy(Dog):
    """Has nothing of its own."""


class Farm(BaseModel):
    animals: list[Animal] = []
    best: Animal | None = None


class Page(BaseModel, Generic[T]):
    items: list[T]


class Zoo(RootModel[dict[str, Animal]]):
    pass


@dataclasses.dataclass
class Boat:
    length: int = 1


@dataclasses.dataclass
class Ferry(Boat):
    cars: int = 2


@dataclasses.dataclass
class Port:
    boats: tuple[Boat, ...]


class Row(TypedDict):
    id: int


class Pair(NamedTuple):
    left: Animal
    right: Animal


def refused(annotation: Any, value: object) -> str:
    with pytest.raises(InvalidValueError) as error:
        Codec.of(annotation).store(value, WHAT)
    assert error.value.code == "fields_lost"
    return str(error.value)


@pytest.mark.parametrize(
    ("annotation", "value", "path"),
    [
        (Animal, Dog(), "$"),
        (Animal | None, Dog(), "$"),
        (Animal | int, Dog(), "$"),
        (Annotated[Animal, "note"], Dog(), "$"),
        (list[Animal], [Animal(), Dog()], "$[1]"),
        (dict[str, Animal], {"a": Dog()}, "$.a"),
        (tuple[int, Animal], (1, Dog()), "$[1]"),
        (set[Animal], {Dog()}, "$"),
        (Farm, Farm(animals=[Dog()]), "$.animals[0]"),
        (Farm, Farm(best=Dog()), "$.best"),
        (list[Farm], [Farm(), Farm(best=Dog())], "$[1].best"),
        (Page[Animal], Page[Animal](items=[Dog()]), "$.items[0]"),
        (Page[Animal], Page(items=[Dog()]), "$.items[0]"),
        (Zoo, Zoo({"a": Dog()}), "$.root.a"),
        (Pair, Pair(Animal(), Dog()), "$.right"),
        (Animal | Boat, Dog(), "$"),
    ],
)
def test_an_object_of_a_subclass_is_refused_with_its_own_fields(
    annotation: Any, value: object, path: str
) -> None:
    said = refused(annotation, value)
    assert f'At {path}: A Dog has the field "tail", which the annotated Animal does not declare' in said
    assert "Annotate with Dog" in said


def test_so_is_one_of_a_dataclass() -> None:
    assert 'A Ferry has the field "cars", which the annotated Boat' in refused(Boat, Ferry())
    assert "At $.boats[1]: " in refused(Port, Port((Boat(), Ferry())))


@pytest.mark.parametrize(
    ("annotation", "value", "type_that_comes_back"),
    [
        (Dog, Puppy(), Dog),
        (Animal | Dog, Dog(), Dog),
        (Dog | Animal, Animal(), Animal),
        (Dog, Dog(tail=7), Dog),
    ],
)
def test_what_loses_nothing_is_taken(annotation: Any, value: object, type_that_comes_back: type) -> None:
    stored = Codec.of(annotation).store(value, WHAT)
    assert (type(stored.value), stored.dropped) == (type_that_comes_back, "")
    assert vars(stored.value) == vars(value)


def test_a_field_that_the_constructor_does_not_take_must_be_as_the_constructor_makes_it() -> None:
    @dataclasses.dataclass
    class Total:
        amount: int
        doubled: int = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            self.doubled = 2 * self.amount

    total = Total(2)
    assert Codec.of(Total).store(total).value == total
    total.doubled = 5
    assert 'does not take the field "doubled"' in refused(Total, total)


# Dicts


class Aliased(BaseModel):
    user: str = Field(alias="userName")
    first: int = Field(1, validation_alias=AliasChoices("one", AliasPath("numbers", 0)))


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


@pytest.mark.parametrize(
    ("annotation", "value", "dropped"),
    [
        (Animal, {"name": "Tom", "lives": 9}, 'at $, Animal does not declare the field "lives"'),
        (Boat, {"length": 2, "b": 1, "a": 1}, 'at $, Boat does not declare the fields "b", "a"'),
        (Row, {"id": 1, "note": "x"}, 'at $, the annotated type does not declare the field "note"'),
        (Farm, {"best": {"lives": 9}}, 'at $.best, Animal does not declare the field "lives"'),
        (
            list[Row],
            [{"id": 1}, {"id": 2, "x": 1}],
            'at $[1], the annotated type does not declare the field "x"',
        ),
        (Aliased, {"userName": "u", "numbers": [1]}, ""),
        (Aliased, {"userName": "u", "one": 1}, ""),
        (Open, {"anything": 1}, ""),
        (dict[str, int], {"a": 1}, ""),
        (dict[int, int], {"1": 1}, ""),
        (dict, {"a": {"b": 1}}, ""),
    ],
)
def test_keys_without_a_place_are_said(annotation: Any, value: object, dropped: str) -> None:
    assert Codec.of(annotation).store(value, WHAT).dropped == dropped


def test_few_of_many_are_said() -> None:
    rows = [{"id": number, **{f"k{key}": 1 for key in range(9)}} for number in range(1000)]
    dropped = Codec.of(list[Row]).store(rows, WHAT).dropped
    assert dropped.count("at $[") == 5
    assert dropped.startswith(
        'at $[0], the annotated type does not declare the fields "k0", "k1", "k2", "k3", "k4"'
    )
    assert "and 4 more" in dropped


def test_what_a_validator_makes_of_another_object_is_its_own_affair() -> None:
    class Price(BaseModel):
        cents: int

        @model_validator(mode="before")
        @classmethod
        def read(cls, given: Any) -> Any:
            return {"cents": given.length} if isinstance(given, Boat) else given

    assert Codec.of(Price).store(Boat(5)).value == Price(cents=5)


def test_a_value_that_cannot_be_compared_is_walked_through() -> None:
    class Odd(Animal):
        def __eq__(self, other: object) -> bool:
            raise RuntimeError("no")

        __hash__ = None  # type: ignore[assignment]

    stored = Codec.of(Odd).store(Odd())
    assert type(stored.value) is Odd
