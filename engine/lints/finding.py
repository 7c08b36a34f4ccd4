"""What a lint says, and where."""

from __future__ import annotations

import ast
import os
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @classmethod
    def of(cls, id: str) -> Severity:
        """Read it from the letter of an id: E105 is an error."""
        return {"E": cls.ERROR, "W": cls.WARNING, "I": cls.INFO}[id[0]]

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule has found at a node of the source. `id` is short, as in a comment that allows it: E105."""

    id: str
    node: ast.AST
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A mistake, or what looks like one, at a place of the source. `id` is that of a system check: engine.E105.

    `workflow` is empty for what stands in no workflow's code. Lines and columns count from 1.
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
        """The file as seen from the working directory; from its topmost package, if it is not below that."""
        path = Path(self.file)
        if path.is_relative_to(Path.cwd()):
            return os.path.relpath(path)
        return str(path.relative_to(top_package(path).parent))

    def plain(self) -> dict[str, str | int]:
        """Return it as JSON may hold it."""
        return {**asdict(self), "severity": str(self.severity), "file": self.shown_file}


def top_package(path: Path) -> Path:
    """Return the topmost package that a file is in, or the file itself."""
    top = path
    while (top.parent / "__init__.py").exists():
        top = top.parent
    return top
