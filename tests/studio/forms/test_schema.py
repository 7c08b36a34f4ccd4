"""A JSON Schema, shown to users."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, Field, RootModel, TypeAdapter

from studio.forms import schema
from studio.templatetags.studio_tags import with_code


class Item(BaseModel):
    sku: str = Field(min_length=1, description="As on the shelf")
    quantity: int = Field(gt=0)


class Order(BaseModel):
    customer: str = Field(examples=["Ana"])
    items: list[Item] = Field(min_length=1)
    ship_by: date | None = None
    priority: Literal["normal", "express"] = "normal"


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class Outline(RootModel[list["Outline"] | str]):
    """A type that holds itself without a field between."""


class Book(BaseModel):
    outline: Outline


def test_a_type_that_holds_itself_is_named_where_it_comes_again() -> None:
    (row,) = schema.fields(TypeAdapter(Book).json_schema())
    assert (row.name, row.type) == ("outline", "list of Outline or string")


def test_fields_are_listed_nested_with_type_and_rules() -> None:
    rows = schema.fields(TypeAdapter(Order).json_schema())
    assert [(row.depth, row.name, row.type, row.is_required, row.rules) for row in rows] == [
        (0, "customer", "string", True, ()),
        (0, "items", "list of object", True, ("at least 1 item",)),
        (1, "sku", "string", True, ("at least 1 character",)),
        (1, "quantity", "integer", True, ("more than 0",)),
        (0, "ship_by", "string (date) or null", False, ()),
        (0, "priority", "normal | express", False, ('default: "normal"',)),
    ]
    assert rows[2].description == "As on the shelf"


class Rated(BaseModel):
    name: str = Field(min_length=3, max_length=60)
    note: str | None = Field(None, max_length=400)
    code: str = Field(pattern=r"^[A-Z]-\d+$", examples=["A-17"])
    price: Decimal = Field(ge=0, le=1000)
    share: float = Field(gt=0, lt=0.5)
    many: int = Field(ge=2)
    vip: bool = False
    tags: list[str] = []


def test_each_rule_is_said_once_and_in_words() -> None:
    rows = schema.fields(TypeAdapter(Rated).json_schema())
    assert {row.name: row.rules for row in rows} == {
        "name": ("3 to 60 characters",),
        "note": ("at most 400 characters",),
        "code": (r"matches ^[A-Z]-\d+$, such as A-17",),
        "price": ("0 to 1,000",),
        "share": ("more than 0", "less than 0.5"),
        "many": ("at least 2",),
        "vip": ("default: no",),
        "tags": ("default: none",),
    }


def test_the_example_comes_from_defaults_examples_and_types() -> None:
    assert schema.example(TypeAdapter(Order).json_schema()) == {
        "customer": "Ana",
        "items": [{"sku": "", "quantity": 1}],
        "ship_by": None,
        "priority": "normal",
    }


def test_a_schema_that_contains_itself_ends() -> None:
    rows = schema.fields(TypeAdapter(Tree).json_schema())
    assert max(row.depth for row in rows) == schema.DEEPEST
    assert schema.example(TypeAdapter(Tree).json_schema()) == {"name": "", "children": []}


def test_a_schema_without_fields_is_one_row() -> None:
    (row,) = schema.fields(TypeAdapter(list[str]).json_schema())
    assert (row.name, row.type) == ("", "list of string")


def test_no_schema_is_no_rows() -> None:
    assert schema.fields(None) == []
    assert schema.example(None) == {}


def test_backticks_of_a_docstring_are_code_and_all_else_is_text() -> None:
    text = "Give `a<b>` or ``c``, <i>not</i> a lone ` of these."
    expected = "Give <code>a&lt;b&gt;</code> or <code>c</code>, &lt;i&gt;not&lt;/i&gt; a lone ` of these."
    assert with_code(text) == expected
    assert with_code("plain") == "plain"
