"""A start as people type it elsewhere: an address, and commands. None of them has a secret."""

from __future__ import annotations

import json
import pprint
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from engine.values.secret_places import secret_places
from studio.forms.document import MISSING, dump, put
from studio.forms.shape import shape_of

LONGEST_URL = 4_000  # characters; some servers and programs cut longer ones
LONGEST = 20_000


@dataclass(frozen=True, slots=True)
class Copy:
    """One way to start it. Without a text, `note` says why."""

    name: str
    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """What is to be started: the params without secrets, or MISSING."""

    workflow: str
    params: Any
    id: str
    tags: Sequence[str]
    at: str = ""


def without_secrets(value: Any, root: Mapping[str, Any] | None) -> tuple[Any, bool]:
    """Return the params without secrets, and whether there were any."""
    places = [] if value is MISSING else secret_places(value, root)
    # From the end of each list, so that the other items keep their numbers.
    for path in sorted(places, key=lambda path: [str(part).zfill(9) for part in path], reverse=True):
        value = put(value, path, MISSING)
    return value, bool(places)


def copies(start: Start, root: Mapping[str, Any] | None, site: str) -> list[Copy]:
    """Return the start as an address, curl, Python and a command line. `site` is the address of the host."""
    found = [_url(start, root, site), _curl(start, site), _python(start), _command(start)]
    return [
        one if len(one.text) <= LONGEST else Copy(one.name, "", "The parameters are too large for this.")
        for one in found
    ]


def _url(start: Start, root: Mapping[str, Any] | None, site: str) -> Copy:
    address = site + reverse("studio:start", args=[start.workflow])
    when = [("at", start.at)] if start.at else []
    if start.params is MISSING:
        return Copy("URL", f"{address}?{urlencode(when)}" if when else address)
    if not isinstance(start.params, dict) or any("." in name or not name for name in start.params):
        return Copy("URL", "", "Only an object with plain names fits into an address.")
    properties = shape_of(root, root).about.get("properties", {}) if root else {}
    pairs = [
        (f"p.{name}", value if _is_text(root, properties.get(name), value) else _line(value))
        for name, value in start.params.items()
    ] + when
    text = f"{address}?{urlencode(pairs)}" if pairs else address
    return (
        Copy("URL", text) if len(text) <= LONGEST_URL else Copy("URL", "", "It is too long for an address.")
    )


def _is_text(root: Mapping[str, Any] | None, node: Any, value: Any) -> bool:
    return (
        isinstance(value, str)
        and root is not None
        and node is not None
        and shape_of(root, node).kind == "text"
    )


def _line(value: Any) -> str:
    """Return a value as JSON on one line, with the digits that were typed."""
    return " ".join(line.strip() for line in dump(value).split("\n"))


def _curl(start: Start, site: str) -> Copy:
    fields: list[str] = [f'"id": {json.dumps(start.id)}'] if start.id else []
    fields += [] if start.params is MISSING else [f'"params": {_line(start.params)}']
    fields += [f'"tags": {json.dumps(list(start.tags), ensure_ascii=False)}'] if start.tags else []
    fields += [f'"at": {json.dumps(start.at)}'] if start.at else []
    body = shlex.quote("{" + ", ".join(fields) + "}")
    address = f"{site}{reverse('studio:api-start', args=[start.workflow])}"
    return Copy("curl", f'curl -H "Authorization: Bearer $TOKEN" --json {body} \\\n  {shlex.quote(address)}')


def _python(start: Start) -> Copy:
    arguments = (
        [] if start.params is MISSING else [pprint.pformat(_plain(start.params), sort_dicts=False, width=90)]
    )
    arguments += [f"id={start.id!r}"] if start.id else []
    arguments += [f"tags={list(start.tags)!r}"] if start.tags else []
    arguments += [f"at={start.at!r}"] if start.at else []
    named = f"workflows[{start.workflow!r}].start({', '.join(arguments)})"
    return Copy("Python", f"from engine import workflows\n\n{named}")


def _plain(value: Any) -> Any:
    """Return a value as Python writes it. A number with many digits is what Python makes of it."""
    return json.loads(dump(value))


def _command(start: Start) -> Copy:
    parts = ["python manage.py workflow start", shlex.quote(start.workflow)]
    parts += [] if start.params is MISSING else [shlex.quote(_line(start.params))]
    parts += [f"--id {shlex.quote(start.id)}"] if start.id else []
    parts += [f"--tag {shlex.quote(tag)}" for tag in start.tags]
    parts += [f"--at {shlex.quote(start.at)}"] if start.at else []
    return Copy("Command line", " ".join(parts))
