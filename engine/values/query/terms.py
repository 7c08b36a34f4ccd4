"""What a search asks for: each term of its text, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Generic, TypeVar

B = TypeVar("B", datetime, timedelta, "datetime | timedelta")


class Operator(StrEnum):
    """How a value compares with what is recorded."""

    IS = "="
    IS_NOT = "!="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="
    EXISTS = "*"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A name, or what a name begins with."""

    text: str
    is_prefix: bool = False


@dataclass(frozen=True, slots=True)
class Names:
    """Instances with one of these names. `field` is workflow, step, tag or by."""

    field: str
    patterns: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Statuses:
    """Instances in one of these statuses: the ten that users see."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """Instances in one of these stored statuses. A filter of the command line and the API, without a text."""

    statuses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ids:
    """Instances whose ID begins with one of these texts, ignoring case."""

    beginnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Errors:
    """Instances whose error or pause has one of these texts in its type or message, ignoring case."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FailedAlike:
    """Instances whose latest failure belongs to one of these groups of errors, whatever became of them since."""

    fingerprints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class System:
    """Instances of Reprise's own workflows, which no search finds without this, or only those of others."""

    is_system: bool


@dataclass(frozen=True, slots=True)
class Free:
    """Instances whose ID begins with this text or, if none does, whose error contains it, ignoring case."""

    text: str


@dataclass(frozen=True, slots=True)
class Bound(Generic[B]):
    """An end of a range, and whether it belongs to it."""

    value: B
    is_inclusive: bool


@dataclass(frozen=True, slots=True)
class Moments:
    """Instances that started or finished in a range of time. A timedelta means so long ago. None: no end."""

    field: str
    after: Bound[datetime | timedelta] | None
    before: Bound[datetime | timedelta] | None


@dataclass(frozen=True, slots=True)
class Took:
    """Instances whose duration, until now if they are open, is in a range. None: no end."""

    least: Bound[timedelta] | None
    most: Bound[timedelta] | None


@dataclass(frozen=True, slots=True)
class Literal:
    """A value as it was written. A quoted one is a text; others may be a number, `true`, `false` or `null`, too."""

    text: str
    number: Decimal | None = None
    is_quoted: bool = False
    is_prefix: bool = False


@dataclass(frozen=True, slots=True)
class AtPath:
    """Instances with such a value at a path: `("params", "customer", "id")`. A number in it may index an array.

    IS takes any of the literals; comparisons take one; EXISTS takes none.
    """

    path: tuple[str, ...]
    operator: Operator
    literals: tuple[Literal, ...]

    @property
    def name(self) -> str:
        return ".".join(self.path)


Condition = Names | Statuses | Stored | Ids | Errors | FailedAlike | System | Free | Moments | Took | AtPath


@dataclass(frozen=True, slots=True)
class Term:
    """A term: its condition, and where it stands in the text."""

    condition: Condition
    is_negated: bool
    text: str
    start: int
    end: int

    @property
    def field(self) -> str:
        """The field before the colon: `status`, `params.region`; `text` without one."""
        match self.condition:
            case Names(field=field) | Moments(field=field):
                return field
            case AtPath():
                return self.condition.name
            case _:
                return _FIELDS[type(self.condition)]


_FIELDS: dict[type, str] = {
    Statuses: "status",
    Stored: "status",
    Ids: "id",
    Errors: "error",
    FailedAlike: "error-group",
    System: "system",
    Free: "text",
    Took: "duration",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A term that says nothing that can be searched for: what is wrong, and what to write."""

    text: str
    message: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Query:
    """A search: instances that meet all of its terms. With problems, nothing can be searched."""

    text: str
    terms: tuple[Term, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.terms and not self.problems

    @property
    def is_for_system(self) -> bool:
        """Whether it asks for instances of Reprise's own workflows."""
        asked = [one for one in self.terms if isinstance(one.condition, System)]
        return any(one.condition == System(not one.is_negated) for one in asked)

    def without(self, part: Term | Problem) -> str:
        """Return the text without one of its terms."""
        return f"{self.text[: part.start].rstrip()} {self.text[part.end :].lstrip()}".strip()

    def replaced(self, field: str, term: str = "") -> str:
        """Return the text with this term instead of those of a field; negated ones stay."""
        kept = [one.text for one in self.terms if one.is_negated or one.field != field]
        return " ".join([*kept, *(problem.text for problem in self.problems), *([term] if term else [])])
