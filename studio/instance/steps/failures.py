"""Recorded errors as pages show them, and the step that failed an instance."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from django.db.models import Q

from engine.models import Step
from engine.status.record import Record
from engine.status.steps import steps_of
from engine.values.error_record import raised_in
from engine.values.identity import TOP

_FRAME = re.compile(r'File "([^"]+)", line ([0-9]+)')
LOOKED_THROUGH = 200  # failed steps of one name, at most


@dataclass(frozen=True, slots=True)
class Failure:
    """A recorded error, ready to render."""

    type: str
    message: str
    traceback: tuple[tuple[str, bool], ...]  # (line, whether it is the application's own code)

    @property
    def own_place(self) -> tuple[str, str] | None:
        """The innermost frame of the application's own code: file and line, and what stands there."""
        lines = [*self.traceback, ("", False)]
        frames = [(line.strip(), after.strip()) for (line, own), (after, _) in pairwise(lines) if own]
        found = ((_FRAME.match(line), code) for line, code in reversed(frames))
        return next(
            (
                (f"{at[1].rpartition('/')[2]}:{at[2]}", "" if _FRAME.match(code) else code)
                for at, code in found
                if at
            ),
            None,
        )

    @property
    def own_frames(self) -> int:
        return sum(1 for line, is_own in self.traceback if is_own and line.lstrip().startswith("File "))

    @property
    def text(self) -> str:
        return "\n".join(line for line, _ in self.traceback)


@dataclass(frozen=True, slots=True)
class Origin:
    """The step whose failure ended the instance."""

    step: Step
    name: str
    failure: Failure
    is_shown: bool
    place: str = ""  # start of the query strings of links

    @property
    def address(self) -> str:
        """Link to its last attempt, on a page of earlier steps if this page does not show it."""
        place = f"#s-{self.step.seq}" + (f"-a{self.step.attempts}" if self.step.attempts else "")
        if self.is_shown:
            return place
        inside, query = self.step.parent, f"?{self.place}"
        return (
            f"{query}upto={inside}&open={inside}{place}" if inside else f"{query}upto={self.step.seq}{place}"
        )


_LIBRARY = (
    "/site-packages/",
    "/dist-packages/",
    "/lib/python",
    "/engine/replay/",
    "/engine/worker/",
    "<frozen ",
)


def failure(error: object) -> Failure | None:
    """Return a recorded error; its traceback marks which frames are the application's own."""
    if not isinstance(error, dict):
        return None
    trace = str(error.get("traceback") or "")
    return Failure(
        type=str(error.get("type") or "Error"),
        message=str(error.get("message") or ""),
        traceback=tuple(_frames(trace.splitlines())),
    )


def _frames(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    is_own = True
    for line in lines:
        if line.lstrip().startswith("File "):
            is_own = not any(mark in line for mark in _LIBRARY)
        elif not line.startswith("    "):
            is_own = True
        yield line, is_own


def origin_of(record: Record, shown: Container[int], place: str) -> Origin | None:
    """Find the step that failed the instance. Its traceback shows the line that raised; the instance's, the handler's.

    An error names its step without the number of the call, so find the one with the same error.
    """
    instance, error = record.instance, record.instance.error
    if instance.status != "errored" or not isinstance(error, dict) or not error.get("step"):
        return None
    rows = steps_of(instance).filter(_named(error["step"]), status="errored").defer("output")
    for step in rows.order_by("-seq")[:LOOKED_THROUGH]:
        found = failure(step.error)
        if found and (found.type, found.message) == raised_in(error):
            name = str(step) if step.name == error["step"] else str(error["step"])
            return Origin(step, name, found, step.seq in shown, place)
    return None


def _named(said: str) -> Q:
    """Match a step by its name in an error. An error names items of a map by index."""
    item = re.fullmatch(r"(.+)\[([0-9]{1,5})\]", said, re.DOTALL)
    return Q(name=said) | (Q(name=item[1], count=int(item[2]) + 1, parent__gt=TOP) if item else Q())
