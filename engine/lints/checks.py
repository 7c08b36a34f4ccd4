"""The lints as Django's system checks.

`manage.py check` fails on errors. Every other command only tells them, as warnings: Django would refuse to start a
worker or the Studio, which shows what is wrong, and workflows that are right would stand still with those that are not.
What is merely mentioned, and what stands in other files of the project, is told by `check` alone: it would drown what
`migrate` has to say, and takes longer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from django.core.checks import CheckMessage, Error, Info, register
from django.core.checks import Warning as Caution

from engine.lints import Finding, Severity, all_findings, findings_of_code
from engine.registry import workflows

MESSAGES: dict[Severity, Callable[..., CheckMessage]] = {
    Severity.ERROR: Error,
    Severity.WARNING: Caution,
    Severity.INFO: Info,
}


@register("engine")
def check_workflows(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Lint every workflow."""
    if sys.argv[1:2] == ["check"]:
        return [_message(one, MESSAGES[one.severity]) for one in all_findings()]
    found = {
        (one.place, one.id): one for workflow in workflows.values() for one in findings_of_code(workflow)
    }
    return [_message(one, Caution) for one in found.values()]


def _message(finding: Finding, make: Callable[..., CheckMessage]) -> CheckMessage:
    return make(finding.message, hint=finding.hint, obj=finding.place, id=finding.id)
