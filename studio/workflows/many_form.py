"""The form that starts many instances: its text, and what each line of it would do."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.declare.registry import Workflow
from engine.steer import launch
from studio.forms.pace import pace_of
from studio.forms.tokens import tag_of, token_of
from studio.workflows.many_lines import Line, Lines, Refused, read_lines

MOST = launch.MAX_BATCH
MOST_BYTES = 1024 * 1024
SHOWN = 5  # of the lines that start something
SHOWN_REFUSED = 50


@dataclass(frozen=True, slots=True)
class ManyForm:
    """What was typed or read from a file in the browser. `seen` identifies the text of the preview.

    `token` is the id of the job: the form starts one.
    """

    text: str
    token: str
    seen: str = ""
    pace: str = "all"

    @classmethod
    def of(cls, given: Mapping[str, str]) -> ManyForm:
        text = given.get("text", "").replace("\r\n", "\n").strip("\n")
        return cls(text, token_of(given.get("token", "")), given.get("seen", ""), pace_of(given))

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8", "replace")).hexdigest()

    @property
    def is_seen(self) -> bool:
        """Return whether the preview was of this text."""
        return self.seen == self.digest

    @property
    def tag(self) -> str:
        """The tag of all that this form starts."""
        return tag_of(self.token)

    def items(self, lines: Sequence[Line]) -> list[Any]:
        """Return the lines as they are started. The same form and line always give the same id."""
        return [
            {
                **line.item,
                "id": line.item.get("id") or f"{self.token}-{line.number}",
                "tags": _with(line.item.get("tags"), self.tag),
            }
            for line in lines
        ]


def look(workflow: Workflow[Any, Any], form: ManyForm) -> Lines:
    """Read and check every line. Nothing is written."""
    size = len(form.text.encode("utf-8", "replace"))
    if size > MOST_BYTES:
        return Lines(problem=f"The text has {size:,} bytes; the limit is {MOST_BYTES:,}. Split it.")
    found = read_lines(form.text, workflow.params_schema(), MOST)
    if found.problem or not (found.good or found.refused):
        return Lines(problem=found.problem or "There is no line to start. Paste some, or choose a file.")
    return _checked(workflow, form, found)


def _checked(workflow: Workflow[Any, Any], form: ManyForm, found: Lines) -> Lines:
    wrong = {one["index"]: one["message"] for one in launch.check_many(workflow, form.items(found.good))}
    good = [line for index, line in enumerate(found.good) if index not in wrong]
    refused = [Refused(found.good[index].number, rule) for index, rule in wrong.items()]
    return Lines(good, sorted([*found.refused, *refused], key=lambda one: one.number))


def _with(tags: Any, tag: str) -> Any:
    return [*tags, tag] if isinstance(tags, list) else [tag] if tags is None else tags
