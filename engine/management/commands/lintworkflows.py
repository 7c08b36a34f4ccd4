from __future__ import annotations

import difflib
import json
from argparse import ArgumentParser
from collections import Counter
from typing import Any

from django.apps import apps
from django.core.management.base import CommandError

from engine.command.program import Program
from engine.declare.registry import Workflow, workflows
from engine.lints import Finding, Severity, all_findings

FAILED, UNKNOWN = 1, 2
LEVELS = [severity.upper() for severity in Severity]


class Command(Program):
    help = (
        "Find mistakes in the source of workflows, without executing it. "
        f"Exits with {FAILED} if there is a finding of --fail-level or worse. To allow one, end its line with: "
        "# reprise: allow W106 because …"
    )
    requires_system_checks = []  # the lints are among them

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("names", nargs="*", help="workflows, or labels of apps (default: all)")
        parser.add_argument("--json", action="store_true", help="print JSON instead of text")
        parser.add_argument(
            "--fail-level", choices=LEVELS, default="ERROR", help="lowest severity that fails (ERROR)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        chosen = [one for name in options["names"] for one in named(name)] if options["names"] else None
        found = all_findings(chosen)
        if options["json"]:
            self.stdout.write(json.dumps([one.plain() for one in found], indent=2, ensure_ascii=False))
        else:
            for one in found:
                self._show(one)
            self.stdout.write(_summary(found, len(workflows if chosen is None else chosen)))
        worst = min((one.severity.rank for one in found), default=len(Severity))
        if worst <= LEVELS.index(options["fail_level"]):
            raise SystemExit(FAILED)

    def _show(self, one: Finding) -> None:
        style = {
            Severity.ERROR: self.style.ERROR,
            Severity.WARNING: self.style.WARNING,
            Severity.INFO: self.style.NOTICE,
        }[one.severity]
        of = f"{one.workflow}: " if one.workflow else ""
        self.stdout.write(f"{one.place}: {style(f'{one.severity} {one.id}')} {of}{one.message}")
        self.stdout.write(f"    {one.hint}")


def named(name: str) -> list[Workflow[Any, Any]]:
    """Return the workflow of that name, or those of the app with that label. Raises CommandError."""
    if name in workflows:
        return [workflows[name]]
    if name in apps.app_configs:
        home = apps.get_app_config(name).name
        return [one for one in workflows.values() if f"{one.handler.__module__}.".startswith(f"{home}.")]
    near = difflib.get_close_matches(name, [*workflows, *apps.app_configs], n=1)
    advice = f'Did you mean "{near[0]}"?' if near else f"There are {', '.join(sorted(workflows)) or 'none'}."
    raise CommandError(f'No workflow or app is named "{name}". {advice}', returncode=UNKNOWN)


def _summary(found: list[Finding], checked: int) -> str:
    counts = Counter(one.severity for one in found)
    parts = [f"{counts[severity]} {severity}{'s' * (counts[severity] != 1)}" for severity in Severity]
    return f"{', '.join(parts)} in {checked} workflow{'s' * (checked != 1)}."
