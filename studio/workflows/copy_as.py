"""A start as people type it elsewhere: an address, and commands. None of them has a secret."""

from __future__ import annotations

import json
import pprint
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from engine.values.secret_places import secret_places
from studio.forms.differences import differences
from studio.forms.document import MISSING, dump
from studio.forms.json_form import document_of
from studio.forms.typed_secrets import without
from studio.workflows.address import MOST_VALUES, fill, one_line, pairs_of
from studio.workflows.prefill import example_text

LONGEST_URL = 4_000  # characters; some servers and programs cut longer ones
LONGEST = 20_000
MOST_NAMED = 5
TOO_LARGE = "The parameters are too large for this."
URL, CURL, PYTHON, COMMAND = "URL", "curl", "Python", "Command line"


@dataclass(frozen=True, slots=True)
class Copy:
    """One way to start it. Without a text, `note` says why."""

    name: str
    text: str
    note: str = ""
    fields: Sequence[str] = ()  # that the note is about


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
    return (MISSING if () in places else without(value, places)), bool(places)


def copies(start: Start, root: Mapping[str, Any] | None, site: str) -> list[Copy]:
    """Return the start as an address, curl, Python and a command line. `site` is the address of the host."""
    params = "" if start.params is MISSING else one_line(start.params)
    if len(params) > LONGEST:  # before they are written in three more ways
        return [Copy(name, "", TOO_LARGE) for name in (URL, CURL, PYTHON, COMMAND)]
    found = [_url(start, root, site), _curl(start, params, site), _python(start), _command(start, params)]
    return [one if len(one.text) <= LONGEST else Copy(one.name, "", TOO_LARGE) for one in found]


def _url(start: Start, root: Mapping[str, Any] | None, site: str) -> Copy:
    """Return the address, if the form that it opens has the same params. It has neither id nor tags."""
    address = site + reverse("studio:start", args=[start.workflow])
    left_out = [name for name, given in (("ID", start.id), ("tags", start.tags)) if given]
    note = f"Without its {' and '.join(left_out)}." if left_out else ""
    when = [("at", start.at)] if start.at else []
    if start.params is MISSING:
        return Copy(URL, f"{address}?{urlencode(when)}" if when else address, note)
    example = document_of(example_text(root)) if root is not None else None
    if root is None or example is None or not isinstance(start.params, dict):
        return Copy(URL, "", "Only an object fits into an address.")
    pairs = pairs_of(root, without_secrets(example.value, root)[0], start.params)
    text = f"{address}?{urlencode([*pairs, *when])}" if pairs or when else address
    if len(pairs) > MOST_VALUES or len(text) > LONGEST_URL:
        return Copy(URL, "", f"An address has at most {MOST_VALUES} values and {LONGEST_URL:,} characters.")
    opened = fill(root, example.value, QueryDict(urlencode(pairs))).document
    lost, _ = differences(without_secrets(opened, root)[0], start.params, MOST_NAMED)
    if lost:
        return Copy(URL, "", "An address cannot hold", [one.where for one in lost])
    return Copy(URL, text, note)


def _curl(start: Start, params: str, site: str) -> Copy:
    fields: list[str] = [f'"id": {json.dumps(start.id)}'] if start.id else []
    fields += [] if start.params is MISSING else [f'"params": {params}']
    fields += [f'"tags": {json.dumps(list(start.tags), ensure_ascii=False)}'] if start.tags else []
    fields += [f'"at": {json.dumps(start.at)}'] if start.at else []
    body = shlex.quote("{" + ", ".join(fields) + "}")
    address = f"{site}{reverse('studio:api-start', args=[start.workflow])}"
    return Copy(CURL, f'curl -H "Authorization: Bearer $TOKEN" --json {body} \\\n  {shlex.quote(address)}')


def _python(start: Start) -> Copy:
    arguments = (
        [] if start.params is MISSING else [pprint.pformat(_plain(start.params), sort_dicts=False, width=90)]
    )
    arguments += [f"id={start.id!r}"] if start.id else []
    arguments += [f"tags={list(start.tags)!r}"] if start.tags else []
    arguments += [f"at={start.at!r}"] if start.at else []
    named = f"workflows[{start.workflow!r}].start({', '.join(arguments)})"
    return Copy(PYTHON, f"from engine import workflows\n\n{named}")


def _plain(value: Any) -> Any:
    """Return a value as Python writes it. A number with many digits is what Python makes of it."""
    return json.loads(dump(value))


def _command(start: Start, params: str) -> Copy:
    """Return the command. An option is one word with its value, which may begin with a dash, as may a number."""
    options = [f"--id={shlex.quote(start.id)}"] if start.id else []
    options += [f"--at={shlex.quote(start.at)}"] if start.at else []
    options += [f"--tag={shlex.quote(tag)}" for tag in start.tags]
    named = [start.workflow, *([params] if params else [])]
    words = [*options, *(["--"] if params.startswith("-") else []), *map(shlex.quote, named)]
    return Copy(COMMAND, " ".join(["python manage.py workflow start", *words]))
