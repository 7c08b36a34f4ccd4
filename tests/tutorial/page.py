"""A page that people follow with their hands: what it tells them to do, in order.

* ```` ```python file ````, or another language: a file. Its first line is its name, behind a `#`.
* ```` ```diff ````: a change to a file, which the first line names in the same way.
* ```` ```console ````: commands, each behind a `$`, and what they print. `…` stands for any text.
* ```` ``` ````: what `reprise run` prints then, in its own terminal.

Comments, which readers do not see, say the rest:

* `<!-- exits with: 1 -->` below commands: the exit code of the last of them.
* `<!-- not run: why -->` above commands: the test cannot run them.
* `<!-- stop: reprise run -->`: press Ctrl-C where this runs.
* `<!-- do: name -->`: what the text asks of people in a browser; a function of that name does it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

FENCE = re.compile(r"^```(\w*) ?(\w*)$")
COMMENT = re.compile(r"^<!-- (.+?): (.+) -->$")


@dataclass(frozen=True)
class File:
    name: str
    text: str


@dataclass(frozen=True)
class Change:
    """Lines to find in a file, once, and lines to have there instead."""

    name: str
    old: str
    new: str


@dataclass(frozen=True)
class Command:
    line: str
    prints: str = ""
    code: int = 0
    is_run: bool = True


@dataclass(frozen=True)
class Output:
    """What `reprise run` prints."""

    text: str


@dataclass(frozen=True)
class Stop:
    """Press Ctrl-C where this runs."""

    program: str


@dataclass(frozen=True)
class Action:
    name: str


Step = File | Change | Command | Output | Stop | Action


def steps_of(text: str) -> list[Step]:
    """Read a page. Raises ValueError if a block or a comment is not one of the above."""
    steps: list[Step] = []
    is_run = True
    lines = iter(text.splitlines())
    for line in lines:
        if fence := FENCE.match(line):
            body = "".join(f"{one}\n" for one in takewhile(lambda one: one != "```", lines))
            steps += (
                replace(step, is_run=is_run) if isinstance(step, Command) else step
                for step in _block(fence[1], fence[2], body)
            )
            is_run = True
        elif line.startswith("<!--"):
            match COMMENT.findall(line):
                case [("not run", _)]:
                    is_run = False
                case [("exits with", code)] if steps and isinstance(last := steps[-1], Command):
                    steps[-1] = replace(last, code=int(code))
                case [("stop", program)]:
                    steps.append(Stop(program))
                case [("do", name)]:
                    steps.append(Action(name))
                case _:
                    raise ValueError(f"This says nothing: {line}")
    return steps


def _block(language: str, kind: str, body: str) -> Iterator[Step]:
    if kind == "file":
        yield File(*_named(body))
    elif language == "diff":
        name, lines = _named(body)
        yield Change(name, _side(lines, "-"), _side(lines, "+"))
    elif language == "console":
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            yield Command(line, output)
    elif not language:
        yield Output(body)
    else:
        raise ValueError(f"Nobody runs this block: {body}")


def _named(body: str) -> tuple[str, str]:
    first, rest = body.split("\n", 1)
    return first.removeprefix("# "), rest


def _side(lines: str, sign: str) -> str:
    return "".join(line[1:] or line for line in lines.splitlines(keepends=True) if line[0] in f" {sign}\n")


def prints(expected: str, printed: str) -> bool:
    """Return whether a program has printed this, apart from blanks and from what `…` stands for."""
    pattern = re.escape(" ".join(expected.split())).replace("…", ".*")
    return re.fullmatch(pattern, " ".join(printed.split()), re.DOTALL) is not None
