"""What the start form begins with: the params of another instance, values in the address, or an example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from engine.declare.registry import Workflow
from engine.models import Instance
from engine.values.secret_places import secret_places
from studio.display import payloads
from studio.forms import schema
from studio.forms.document import MISSING, Path, at, dump, location, parse, put
from studio.forms.json_form import document_of
from studio.forms.json_text import read_text
from studio.forms.shape import Shape, shape_of

LAST = "last"  # instead of an id: the newest instance
MOST_VALUES = 100  # in an address


@dataclass(frozen=True, slots=True)
class Prefill:
    """The text to begin with, and what to say about it."""

    text: str
    notes: tuple[str, ...] = ()


def prefill(workflow: Workflow[Any, Any], root: Mapping[str, Any] | None, given: QueryDict) -> Prefill:
    """Return what the address asks for. `root` is the schema of the params. Secrets are never filled in."""
    if root is None:
        return Prefill("")
    text, notes = _base(workflow, root, given.get("from", ""))
    named = {
        name.removeprefix("p."): str(value) for name, value in given.dict().items() if name.startswith("p.")
    }
    found = document_of(text)
    if not named or found is None:
        return Prefill(text, notes)
    document, more = _with(root, found.value, dict(list(named.items())[:MOST_VALUES]))
    return Prefill(text if document is found.value else dump(document), (*notes, *more))


def newest(workflow: Workflow[Any, Any]) -> Instance | None:
    """Return the newest instance of a workflow."""
    return Instance.objects.filter(workflow=workflow.name).order_by("-key").first()


def _base(workflow: Workflow[Any, Any], root: Mapping[str, Any], source: str) -> tuple[str, tuple[str, ...]]:
    example = payloads.pretty(schema.example(root))
    if not source:
        return example, ()
    if source == LAST:
        found = newest(workflow)
    else:
        wanted = source[:100].replace("\0", "")
        found = Instance.objects.filter(workflow=workflow.name, id=wanted).first()
    if found is None:
        return example, (f"There is no instance {source[:100]} to copy from; this is an example.",)
    return payloads.pretty_stored(found.params), (f"Copied from {found.id}. Secrets are not copied.",)


def _with(root: Mapping[str, Any], document: Any, named: Mapping[str, str]) -> tuple[Any, list[str]]:
    refused, before = [], document
    for name, text in named.items():
        path = _path(document, name)
        if path is None:
            refused.append(name)
            continue
        changed = put(document, path, value_of(shape_at(root, document, path), text))
        if _is_secret(root, changed, path):
            refused.append(name)
        else:
            document = changed
    notes = [f"Not filled in from the address: {', '.join(refused)[:300]}."] if refused else []
    return (document if document is not before else before), notes


def _path(document: Any, name: str) -> Path | None:
    """Return the path of `items.0.sku`. Numbers count in lists, from 0."""
    path: Path = ()
    for part in name.split("."):
        here = at(document, path)
        if isinstance(here, list):
            if not part.isdecimal() or int(part[:6]) >= len(here):
                return None
            path = (*path, int(part))
        elif not part or (here is not MISSING and not isinstance(here, dict)):
            return None
        else:
            path = (*path, part)
    return path


def shape_at(root: Mapping[str, Any], document: Any, path: Path) -> Shape:
    shape = shape_of(root, root)
    for part in path:
        about = shape.about
        if shape.kind == "list":
            shape = shape_of(root, about["items"])
        elif shape.kind == "group" and part in about["properties"]:
            shape = shape_of(root, about["properties"][str(part)])
        elif shape.kind == "map":
            shape = shape_of(root, about["additionalProperties"])
        else:
            return Shape("json")
    return shape


def value_of(shape: Shape, text: str) -> Any:
    """Return a value of the address: text where the schema wants text, else JSON, else text after all."""
    if shape.kind in ("text", "decimal") or (shape.kind == "choice" and text in shape.options):
        return text
    return parse(text) if read_text(text, "params").is_good else text


def _is_secret(root: Mapping[str, Any], document: Any, path: Path) -> bool:
    """Return whether a value is a secret or holds one."""
    short = [place[: len(path)] for place in secret_places(document, root)]
    return any(location(place) == location(path[: len(place)]) for place in short)
