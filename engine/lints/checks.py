"""The lints as Django's system checks.

`manage.py check` shows errors and warnings, and fails on errors. Other commands, which also run Django's checks, show
none: an operator who pauses an instance cannot fix its code, and a worker that refused to start would stop the correct
workflows too. Infos are shown only by `lintworkflows` and the Studio.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as Caution

from engine.lints import Finding, Severity, all_findings

MESSAGES: dict[Severity, Callable[..., CheckMessage]] = {
    Severity.ERROR: Error,
    Severity.WARNING: Caution,
}


@register("engine")
def check_workflows(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Lint every workflow, for `manage.py check`."""
    if sys.argv[1:2] != ["check"]:
        return []
    return [_message(one) for one in all_findings() if one.severity in MESSAGES]


def _message(finding: Finding) -> CheckMessage:
    make = MESSAGES[finding.severity]
    return make(finding.message, hint=finding.hint, obj=finding.place, id=finding.id)
