"""Errors of a schedule, for those who control it."""

from engine.values.errors.base import RepriseError


class ScheduleNotFoundError(RepriseError, LookupError):
    def __init__(self, workflow: str, schedule: str) -> None:
        self.workflow = workflow
        self.schedule = schedule
        super().__init__(f'Workflow "{workflow}" has no schedule "{schedule}".')


class ScheduleNotDeclaredError(RepriseError):
    """The code declares the schedule no more, so it starts nothing."""

    def __init__(self, workflow: str, schedule: str) -> None:
        self.workflow = workflow
        self.schedule = schedule
        super().__init__(
            f'Workflow "{workflow}" no longer declares schedule "{schedule}", so it starts nothing. '
            "Start an instance of the workflow instead."
        )
