"""The findings of lints and their locations."""

from __future__ import annotations

import ast
from dataclasses import asdict, dataclass
from enum import StrEnum

from engine.values.files import shown_file


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @classmethod
    def of(cls, id: str) -> Severity:
        """Return the severity for an ID, from its letter: E105 is an error."""
        return {"E": cls.ERROR, "W": cls.WARNING, "I": cls.INFO}[id[0]]

    @property
    def rank(self) -> int:
        """Return 0 for the worst."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Found:
    """A mistake that a rule found at a node of the source. `id` is short, as in comments: E105."""

    id: str
    node: ast.AST
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A possible mistake at a location in the source. `id` is the ID of the system check: engine.E105.

    `workflow` is empty outside the code of workflows. Lines and columns count from 1.
    """

    id: str
    severity: Severity
    workflow: str
    file: str
    line: int
    column: int
    message: str
    hint: str

    @property
    def place(self) -> str:
        return f"{self.shown_file}:{self.line}:{self.column}"

    @property
    def shown_file(self) -> str:
        return shown_file(self.file)

    def plain(self) -> dict[str, str | int]:
        """Return the finding as JSON values."""
        return {**asdict(self), "severity": str(self.severity), "file": self.shown_file}
