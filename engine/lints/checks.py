"""The lints as Django's system checks.

What is merely mentioned, and what stands in other files of the project, is told by `manage.py check` alone: it would
drown what `migrate` and `runserver` have to say, and takes longer.
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
        found = all_findings()
    else:
        found = [one for workflow in workflows.values() for one in findings_of_code(workflow)]
    return [_message(one) for one in found]


def _message(finding: Finding) -> CheckMessage:
    make = MESSAGES[finding.severity]
    return make(finding.message, hint=finding.hint, obj=finding.place, id=finding.id)
