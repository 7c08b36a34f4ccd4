"""What a form says once it has been read: a value, or problems and where they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and where. `start` and `end` mark it in the JSON text, counted as JavaScript counts."""

    field: str
    message: str
    path: str = ""
    line: int = 0
    column: int = 0
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """What the form says, once it has been read: the value, or what is wrong with it."""

    value: Any
    problems: tuple[Problem, ...]

    @property
    def is_good(self) -> bool:
        return not self.problems

    def of(self, field: str) -> list[Problem]:
        return [problem for problem in self.problems if problem.field == field]
