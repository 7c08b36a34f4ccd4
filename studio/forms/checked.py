"""The result of reading a form: a value, or problems and where they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem and its place. `start` and `end` are offsets in the JSON text, in UTF-16 units as in JavaScript."""

    field: str
    message: str
    path: str = ""
    line: int = 0
    column: int = 0
    start: int | None = None
    end: int | None = None
    target: str = ""  # the id of the input that has it, if the form has one


@dataclass(frozen=True, slots=True)
class Checked:
    """What was read from a form: the value, or its problems."""

    value: Any
    problems: tuple[Problem, ...]

    @property
    def is_good(self) -> bool:
        return not self.problems

    def of(self, field: str) -> list[Problem]:
        return [problem for problem in self.problems if problem.field == field]
