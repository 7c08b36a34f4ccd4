"""Where a reader finds a name that a docstring mentions."""

from __future__ import annotations

from collections.abc import Mapping

from tests.docs.made import error_classes

TYPES = (
    *("StepContext", "RollbackContext", "StepLog", "ReceivedEvent", "Handle", "InstanceResult", "Schedule"),
    *("DefinedStep", "StartedMany", "DeletedMany", "StartError", "DeleteError", "RestartPlan"),
    *("PlannedStep", "Workflow", "WorkflowStep", "ErrorRecord"),
)
OF_API: Mapping[str, str] = {
    **{name: f"errors.md#{name.lower()}" for name in error_classes.NAMES},
    **{name: f"#{name.lower()}" for name in TYPES},
    "Workflow": "#the-class-workflow",
    "InstanceResult": "#the-class-instanceresult",
}
OF_ERRORS: Mapping[str, str] = {
    **{name: f"#{name.lower()}" for name in error_classes.NAMES},
    **{name: f"api.md{OF_API[name]}" for name in TYPES},
}
