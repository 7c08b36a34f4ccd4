"""The kept source of the versions of a workflow's code."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from engine.declare.registry import workflows as registry
from engine.lints.source import Source
from engine.models import CodeVersion
from studio.workflows.code import Found, source_now

NOT_KEPT = "no worker has kept its source"
TOO_LONG = "its source has more than 256 kB and is not kept"
NOT_PYTHON = "this version of Python cannot read its source"


@dataclass(frozen=True, slots=True)
class Kept:
    """A version and its source; without one, `lacking` says why."""

    code: str
    source: Found | None
    lacking: str = ""

    @property
    def short(self) -> str:
        return self.code[:12]


def versions(name: str, codes: Collection[str]) -> Mapping[str, Kept]:
    """Return these versions. That of the code now is read from its file, the others with at most one query."""
    workflow = registry.get(name)
    now = "" if workflow is None else workflow.fingerprint
    wanted = {*codes} - {"", now}
    rows = CodeVersion.objects.filter(workflow=name, code__in=wanted) if wanted else ()
    found = {row.code: _kept(row) for row in rows}
    missing = {code: Kept(code, None, NOT_KEPT) for code in wanted if code not in found}
    current = {} if not now else {now: _current(name, now)}
    return {**missing, **found, **current}


def version(name: str, code: str) -> Kept:
    return versions(name, [code])[code]


def before(name: str) -> Mapping[str, str]:
    """Return the kept versions of a workflow, each with the one that workers had before it; empty for the first."""
    rows = CodeVersion.objects.filter(workflow=name, text__isnull=False).order_by("first_seen_at", "code")
    known = list(rows.values_list("code", flat=True))
    return dict(zip(known, ["", *known], strict=False))


def _current(name: str, code: str) -> Kept:
    found = source_now(name)
    return Kept(code, found, "" if found else NOT_KEPT)


def _kept(row: CodeVersion) -> Kept:
    if row.text is None:
        return Kept(row.code, None, TOO_LONG)
    found = _parsed(row.text, row.file, row.function, row.line)
    return Kept(row.code, found, "" if found else NOT_PYTHON)


@functools.lru_cache(maxsize=50)
def _parsed(text: str, file: str, function: str, line: int) -> Found | None:
    try:
        source = Source(text, file)
    except (SyntaxError, ValueError, RecursionError):
        return None
    handler = source.handler(function, line)
    return None if handler is None else (source, handler)
