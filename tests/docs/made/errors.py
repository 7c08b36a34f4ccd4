"""The page of errors: cause and cure from the docstring, attributes from `__init__`, and which calls raise it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial

from tests.docs.made import api, source
from tests.docs.made.error_classes import GROUPS, NAMES, PUBLIC, classes
from tests.docs.made.links import OF_ERRORS as LINKS
from tests.docs.made.text import linked, wrapped


def group(name: str) -> str:
    return "\n\n".join(_shown(one) for one in classes(name))


def cause_and_cure(node: ast.ClassDef) -> list[str]:
    """Return the paragraphs of a docstring: the first is the cause, the second the cure."""
    return re.split(r"\n{2,}", source.docstring(node))


def _shown(node: ast.ClassDef) -> str:
    cause, cure = cause_and_cure(node)
    parts = [f"### `{node.name}`", linked(cause, LINKS), wrapped(f"**What to do.** {linked(cure, LINKS)}")]
    facts = "\n".join(wrapped(f"* {one}", indent="  ") for one in _facts(node))
    return "\n\n".join([*parts, *([facts] if facts else [])])


def _facts(node: ast.ClassDef) -> Iterator[str]:
    bases = [ast.unparse(one) for one in node.bases]
    if node.name in PUBLIC and bases not in (["RepriseError"], ["Exception"]):
        yield f"Bases: {', '.join(linked(one, LINKS) if one in LINKS else f'`{one}`' for one in bases)}."
    if attributes := source.attributes_of(node):
        yield f"Attributes: {', '.join(f'`{one}`' for one in attributes)}."
    if raising := raisers().get(node.name):
        yield f"Raised by {', '.join(raising)}."


@cache
def raisers() -> Mapping[str, list[str]]:
    """Return, by error, links to the calls whose docstrings say that they raise it."""
    found: dict[str, list[str]] = {}
    for called, anchor, text in api.documented():
        named = (name for name in re.findall(r"\w+", _raises(text)) if name in NAMES)
        for name in dict.fromkeys(named):
            found.setdefault(name, []).append(f"[`{called}`](api.md#{anchor})")
    return found


def _raises(text: str) -> str:
    """Return the sentences of a docstring that name what is raised."""
    sentences = re.split(r"(?<=\.)\s+", text)
    return " ".join(one for one in sentences if re.search(r"\b[Rr]aises?\b|\braise\b", one))


SECTIONS: Mapping[str, Callable[[], str]] = {f"errors:{name}": partial(group, name) for name in GROUPS}
