"""The source files of workflows, parsed once."""

from __future__ import annotations

import ast
import functools
import re
import tokenize
from pathlib import Path

from engine.lints.names import Names
from engine.values.syntax import parse

ALLOWED = re.compile(r"#\s*reprise:\s*allow\s+([EWI]\d{3}(?:\s*,\s*[EWI]\d{3})*)\s+because\s+\S")
AsyncFunction = ast.AsyncFunctionDef


class Source:
    """A module's source: its tree, its names, and what its comments allow."""

    def __init__(self, text: str, file: str) -> None:
        """Raises SyntaxError or ValueError if the text is not Python."""
        self.file, self.text = file, text
        self.names = Names(parse(text, file))
        self._lines = text.split("\n") if "reprise:" in text else []

    @property
    def tree(self) -> ast.Module:
        return self.names.tree

    @functools.cached_property
    def steps(self) -> list[ast.arg]:
        """Return the arguments that are annotated as WorkflowStep."""
        annotated = ((one, one.annotation) for one in ast.walk(self.tree) if isinstance(one, ast.arg))
        return [arg for arg, said in annotated if said is not None and self._is_step(said)]

    @classmethod
    def of(cls, file: str) -> Source | None:
        """Read a file. Return None if it does not exist, as in a shell, or is not valid Python."""
        try:
            stat = Path(file).stat()
            return _read(file, stat.st_mtime_ns, stat.st_size)
        except (OSError, SyntaxError, ValueError, RecursionError):
            return None

    def handler(self, name: str, line: int) -> AsyncFunction | None:
        """Return the `async def` with that name whose decorators, or else itself, start on that line."""
        for node in ast.walk(self.tree):
            if isinstance(node, AsyncFunction) and node.name == name and first_line(node) == line:
                return node
        return None

    def _is_step(self, annotation: ast.expr) -> bool:
        said = annotation.value if isinstance(annotation, ast.Constant) else self.names.resolve(annotation)
        return str(said).rpartition(".")[2] == "WorkflowStep"

    def allows(self, id: str, node: ast.AST) -> bool:
        """Return whether a comment at the end of one of the node's lines allows this ID."""
        return any(id in _ids(line) for line in self._lines_of(node))

    def has_malformed_comment(self, node: ast.AST) -> bool:
        """Return whether a comment starts like one that allows a lint but has the wrong form."""
        return any(
            re.search(r"#\s*reprise:", line) and not ALLOWED.search(line) for line in self._lines_of(node)
        )

    def _lines_of(self, node: ast.AST) -> list[str]:
        if not self._lines:
            return []
        first, last = first_line(node), getattr(node, "end_lineno", None) or first_line(node)
        if isinstance(node, ast.FunctionDef | AsyncFunction):
            last = node.body[0].lineno - 1  # the last line of the signature
        # The comment may be at the end of a line that continues after the node.
        return self._lines[first - 1 : last]


def first_line(node: ast.AST) -> int:
    lines: list[int] = [one.lineno for one in getattr(node, "decorator_list", [])]
    return min([*lines, getattr(node, "lineno", 1)])


def _ids(line: str) -> list[str]:
    found = ALLOWED.search(line)
    return re.split(r"\s*,\s*", found[1]) if found else []


@functools.lru_cache(maxsize=500)
def _read(file: str, changed_ns: int, size: int) -> Source:
    with tokenize.open(file) as stream:
        return Source(stream.read(), file)
