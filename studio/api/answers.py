"""Write answers: JSON as the command line prints it, with nothing that a browser may keep or interpret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse

from engine.models import Instance
from engine.status.documents import as_json

CONTENT_TYPE = "application/json"


def answer(
    document: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """Return a document as the answer. Secrets in it are masked."""
    return HttpResponse(as_json(document, indent=None), CONTENT_TYPE, status, headers=headers)


def etag_of(row: Instance) -> str:
    """Return the tag of an instance's state: it changes with its generation, signals, status, wait and rollback.

    Steps that begin or end do not change it: what a restart from a step keeps may differ under the same tag.
    """
    return f'"{row.generation}.{row.signals}.{row.status}.{row.waiting_for}.{row.rollback}"'
