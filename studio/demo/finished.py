"""Which instances will never clean up after themselves any more."""

from __future__ import annotations

from collections.abc import Iterable

from engine.models import Instance
from engine.states import FINAL


def finished(workflow: str, ids: Iterable[str]) -> set[str]:
    """Return those of the ids whose instance is known and has ended.

    An unknown id is not returned: it may be another installation's, on the same server.
    """
    ended = Instance.objects.filter(workflow=workflow, id__in=list(ids), status__in=FINAL)
    return set(ended.values_list("id", flat=True))
