"""Read addresses: the names in a path, and the query string.

A path with an invalid name gets a 404 before any query runs.
"""

from __future__ import annotations

import re
from collections.abc import Container
from urllib.parse import urlsplit, urlunsplit

from django.http import HttpRequest, QueryDict
from django.urls.converters import StringConverter
from django.utils.http import url_has_allowed_host_and_scheme

_KEY = re.compile(r"[0-9]{1,18}")
IGNORED_SHOWN = 5
LONGEST_SHOWN = 80


class WorkflowName(StringConverter):
    regex = r"(?:reprise\.)?[A-Za-z0-9_][A-Za-z0-9_-]{0,63}"  # Reprise's own workflows have a dot


class InstanceId(StringConverter):
    regex = r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}"


class JobId(StringConverter):
    regex = InstanceId.regex


class WorkerName(StringConverter):
    regex = r"[^/]{1,100}"


class Anything(StringConverter):
    """The rest of a path, also with line breaks, which Django's own converter does not match."""

    regex = r"[\s\S]+"


class Fingerprint(StringConverter):
    regex = r"[0-9a-f]{16}"


class HookSlug(StringConverter):
    regex = r"[a-z0-9][a-z0-9_-]{0,79}"


class StepNumber:
    regex = r"[0-9]{1,9}"

    def to_python(self, value: str) -> int:
        return int(value)

    def to_url(self, value: int) -> str:
        return str(value)


def ignored(given: QueryDict, understood: Container[str]) -> list[str]:
    """Return the parts of a query string that have no effect, as `name=value`.

    The last value of a name counts. A list must not silently show more than was asked for.
    """
    found = []
    for name, values in given.lists():
        without_effect = values[:-1] if name in understood else values
        found += [f"{name}={value.strip()}" for value in without_effect if value.strip()]
    return [_short(part) for part in found[:IGNORED_SHOWN]]


def is_ours(request: HttpRequest, address: str) -> bool:
    """Return whether an address that was given leads to a page of this site."""
    return address.startswith("/") and url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )


def own_path(request: HttpRequest, url: str) -> str:
    """Return path and query of a URL on this site; empty for any other."""
    hosts = {request.get_host()}
    if not url_has_allowed_host_and_scheme(url, allowed_hosts=hosts, require_https=request.is_secure()):
        return ""
    parts = urlsplit(url)
    return urlunsplit(("", "", parts.path, parts.query, ""))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def cursor(text: str) -> int | None:
    """Return a position in a list, or None if it is missing or invalid."""
    return int(text) if _KEY.fullmatch(text) else None


def keys(text: str, limit: int) -> list[int]:
    """Return the keys of the rows that a page shows."""
    return [int(part) for part in text.split(",")[:limit] if _KEY.fullmatch(part)]
