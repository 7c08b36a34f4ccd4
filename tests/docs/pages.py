"""The pages of the guide as programs: which code stands on them, what is to be done with it, and where it stands.

What a page may hold:

* ```` ```python ````: code that people read. All of a page runs, in order, in one module.
* ```` ```python wrong ````: what nobody should write. Right below it stands how that is proven: one of the next three.
* `<!-- raises: DeclarationError: must be a function -->`: running the block raises this, with such a message.
* `<!-- lint: engine.E104 -->`: the block runs, and the lints find this in its workflows.
* ```` ```python file ````: a file that readers write, named in its first line. tests/tutorial writes and runs it.
* `<!-- python` … `-->`: code that people do not see, with an `assert` if it proves that something is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]

FENCE = re.compile(r"^```(\w*)(.*)$")
HIDDEN = "<!-- python"
DIRECTIVE = re.compile(r"^<!-- (raises|lint): (.+) -->$")


@dataclass(slots=True)
class Block:
    """A piece of code; `line` is that of its first line on the page, from 1."""

    code: str
    line: int
    is_hidden: bool = False
    is_wrong: bool = False
    raises: str = ""
    lints: list[str] = field(default_factory=list)
    is_proven: bool = False

    def padded(self) -> str:
        """Return the code with as many empty lines above it as there are lines on the page."""
        return "\n" * (self.line - 1) + self.code


def blocks_of(text: str) -> list[Block]:
    """Read the blocks of a page, each wrong one with what proves that it is wrong."""
    found: list[Block] = []
    for one in _read(text):
        if isinstance(one, Block):
            found.append(one)
            if one.is_hidden and len(found) > 1 and "assert" in one.code:
                found[-2].is_proven = True
        else:
            what, value = one
            found[-1].is_proven = True
            if what == "raises":
                found[-1].raises = value
            else:
                found[-1].lints.append(value)
    return found


def _read(text: str) -> Iterator[Block | tuple[str, str]]:
    lines = enumerate(text.splitlines(), start=1)
    for number, line in lines:
        if fence := FENCE.match(line):
            code = list(_until("```", lines))
            if fence[1] == "python" and "file" not in fence[2].split():
                yield Block("\n".join(code), number + 1, is_wrong="wrong" in fence[2].split())
        elif line == HIDDEN:
            yield Block("\n".join(_until("-->", lines)), number + 1, is_hidden=True)
        elif directive := DIRECTIVE.match(line):
            yield directive[1], directive[2]


def _until(end: str, lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    for _, line in lines:
        if line == end:
            return
        yield line
    raise ValueError(f"A block without {end} at its end.")


def as_program(text: str) -> str:
    """Return the page as one file of Python: other lines are empty, so that line numbers are the page's."""
    return _program(text, blocks_of(text))


def as_versions(text: str) -> list[str]:
    """Return the page as programs. Each ends where other code is deployed, which may define the same names again."""
    versions: list[list[Block]] = [[]]
    for block in blocks_of(text):
        versions[-1].append(block)
        if "stage.deploy()" in block.code:
            versions.append([])
    return [_program(text, blocks) for blocks in versions]


def _program(text: str, blocks: list[Block]) -> str:
    lines = [""] * (text.count("\n") + 2)
    for block in blocks:
        for at, line in enumerate(block.code.splitlines(), start=block.line - 1):
            lines[at] = line
    return "\n".join(lines)
