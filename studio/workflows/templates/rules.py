"""What a template may be: its name, and what it saves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.status.sentences.bidi import isolated
from engine.values.secret_places import secret_places
from engine.values.serialization.envelope import is_mask
from studio.forms.document import at, dump, location, parse
from studio.forms.json_text import read_text
from studio.forms.names import is_name, rule_of_names
from studio.forms.typed_secrets import without
from studio.models.start_template import LONGEST_NAME

MOST_OF_A_WORKFLOW = 50
MOST_NAMED = 5
SHOWN = 80  # characters of a name that is refused


class InvalidTemplateError(ValueError):
    """A template cannot be saved like this. Nothing was written.

    `field` says which part is wrong, and the message the value and the rule.
    """

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Content:
    """Params without secrets, as JSON, and the paths of the secrets that they had."""

    text: str
    secrets: tuple[str, ...] = ()

    @property
    def left_out(self) -> str:
        """Name the secrets, or the first of them."""
        more = len(self.secrets) - MOST_NAMED
        return ", ".join(self.secrets[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def check_name(name: str) -> None:
    """Raise InvalidTemplateError unless it is a name."""
    if name and is_name(name, LONGEST_NAME):
        return
    shown = name if len(name) <= SHOWN else f"{name[:SHOWN]}…"
    said = f'"{isolated(shown)}" cannot be the name of a template. ' if name else "The template has no name. "
    raise InvalidTemplateError("name", said + rule_of_names(LONGEST_NAME))


def check_content(text: str, root: Mapping[str, Any]) -> Content:
    """Return what can be saved. Raises InvalidTemplateError if it is not JSON, too large, or all of it is secret."""
    if not text.strip():
        raise InvalidTemplateError("params", "There are no parameters to save. Type them first.")
    problems = read_text(text, "params").problems
    if problems:
        at = f" (line {problems[0].line}, column {problems[0].column})" if problems[0].line else ""
        raise InvalidTemplateError("params", f"The parameters cannot be saved: {problems[0].message}{at}")
    content = content_of(text, root)
    if not content.text:
        raise InvalidTemplateError("params", "All parameters are secret, and a template has no secrets.")
    return content


def content_of(text: str, root: Mapping[str, Any], *, is_stored: bool = False) -> Content:
    """Return the params without what the schema calls secret. The text must be valid JSON.

    An item of a list is replaced by a mask, which no start takes: the items after it keep their places. What was typed
    may have a secret in the wrong place, which is left out; what is stored has not, so that all else stays.
    """
    value = parse(text)
    places = secret_places(value, root, is_only_declared=is_stored)
    if not places:
        return Content(text)
    left = "" if () in places else dump(without(value, places, keeps_items=True))
    typed = (place for place in places if not is_mask(at(value, place)))
    return Content(left, tuple(location(place) or "all" for place in typed))
