"""What the panel beside the start form says: a dry run, which writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from engine.declare.registry import Workflow
from engine.lints import step_names
from engine.models import Instance
from engine.status.facts import Servers
from engine.status.servers import servers_of
from studio.display import payloads
from studio.forms.checked import Checked
from studio.forms.differences import Difference, differences, unknown_fields
from studio.forms.document import MISSING
from studio.forms.json_form import Document, document_of
from studio.workflows.copy_as import Copy, Start, copies, without_secrets
from studio.workflows.pauses import paused_of
from studio.workflows.prefill import newest
from studio.workflows.start_form import Typed

MOST_STEPS = 4
MOST_DIFFERENCES = 12


@dataclass(frozen=True, slots=True)
class Findings:
    """What a start would meet."""

    servers: Servers
    is_paused: bool
    steps: list[str]  # the first in the source
    more_steps: int
    last: Instance | None
    differences: list[Difference] | None  # None: they cannot be compared
    more_differences: int
    unknown: list[str]  # fields that the schema does not name
    copies: list[Copy]
    has_secrets: bool
    starts_at: datetime | None  # None: at once


def findings(workflow: Workflow[Any, Any], typed: Typed, checked: Checked, site: str) -> Findings:
    """Look at what was typed, and at what would run it."""
    root = typed.form.root
    found = document_of(typed.text)
    value = MISSING if found is None or not workflow.takes_params else found.value
    masked = document_of(typed.form.without_secrets().text)
    last = newest(workflow)
    differs, more = _since(last, masked, takes_params=workflow.takes_params)
    bare, has_secrets = without_secrets(value, root)
    start = Start(workflow.name, bare, typed.id, typed.tag_list, typed.at.text)
    steps = step_names(workflow)
    return Findings(
        servers=servers_of([workflow.name])[workflow.name],
        is_paused=bool(paused_of([workflow.name])),
        steps=list(steps[:MOST_STEPS]),
        more_steps=max(0, len(steps) - MOST_STEPS),
        last=last,
        differences=differs,
        more_differences=more,
        unknown=unknown_fields(root, value),
        copies=copies(start, root, site) if checked.is_good else [],
        has_secrets=has_secrets,
        starts_at=typed.at.after(timezone.now()) if checked.is_good else None,
    )


def _since(
    last: Instance | None, masked: Document | None, *, takes_params: bool
) -> tuple[list[Difference] | None, int]:
    """Return what differs from the newest instance. Secrets are masks on both sides, so they do not differ."""
    before = None if last is None else document_of(payloads.pretty_stored(last.params))
    if before is None or masked is None:
        return None, 0
    is_null = masked.value is MISSING and not takes_params
    return differences(before.value, None if is_null else masked.value, MOST_DIFFERENCES)
