"""The type of a JSON value."""

from __future__ import annotations

from typing import TypeAlias, Union

JSON: TypeAlias = Union[bool, int, float, str, list["JSON"], dict[str, "JSON"], None]  # noqa: UP007 - no | with a text
