"""Errors of a workflow: its declaration, its schedules, its code, its time."""

import difflib
from collections.abc import Iterable, Sequence
from datetime import timedelta

from engine.values.durations import format_duration
from engine.values.errors.base import RepriseError, shown


class WorkflowTimeoutError(RepriseError):
    """The workflow's `timeout`, or `handler_timeout` for the code between two steps, was exceeded; `limit` says
    which.

    Increase that option of `@workflow`. If it was `handler_timeout`, move slow code from between the steps into a
    step. Then restart the instance.
    """

    def __init__(self, limit: str, timeout: timedelta) -> None:
        self.limit = limit
        self.timeout = timeout.total_seconds()
        where = (
            "The handler's code between steps ran longer than its handler_timeout of"
            if limit == "handler_timeout"
            else "The instance, including all its waits, took longer than the workflow's timeout of"
        )
        super().__init__(f"{where} {format_duration(timeout)}.")


class NonDeterminismError(RepriseError):
    """The code no longer fits what is recorded: its types refuse the params or an output, or a call has other
    items, branches or params than before. The instance is paused and nothing is overwritten.

    Deploy code that fits the record and resume the instance, or restart it.
    """

    def __init__(self, reason: str, *, recorded: str, current: str) -> None:
        self.reason = reason
        self.recorded = recorded
        self.current = current
        super().__init__(
            f"{reason} Recorded: {recorded}. Now: {current}. Deploy code that fits the record and resume, "
            "or restart the instance."
        )


class SecretKeyError(NonDeterminismError):
    """A stored secret cannot be decrypted: this process does not have its key. Nothing is overwritten. `needed` is
    the id of that key, `known` those of the keys that this process has.

    Add the missing key to REPRISE["SECRET_KEYS"], start the processes again and resume the instance. `manage.py
    secretkeys` counts what needs which key.
    """

    def __init__(self, needed: str, known: Sequence[str]) -> None:
        self.needed = needed
        self.known = list(known)
        keys = f"key{'' if len(self.known) == 1 else 's'} {', '.join(self.known)}"
        super().__init__("A stored secret cannot be decrypted.", recorded=f"key {needed}", current=keys)
        if needed in self.known:
            advice = "It was encrypted with that key, so what is stored was damaged. Restore it from a backup"
        else:
            advice = (
                'Add the missing key to REPRISE["SECRET_KEYS"], or to SECRET_KEY_FALLBACKS if it was a SECRET_KEY, and '
                "start the processes again"
            )
        message = f"{self.reason} It needs key {needed}; this process has {keys}. {advice}; then resume the instance."
        self.args = (message,)


class CodeChangedError(RepriseError):
    """The handler is not the one that the instance started under, and its workflow has `on_code_change="pause"`.
    `recorded` and `current` are the fingerprints of the two.

    Accept the new code with `accept_code()`, or deploy the old code again.
    """

    def __init__(self, workflow: str, *, recorded: str, current: str) -> None:
        self.workflow = workflow
        self.recorded = recorded
        self.current = current
        super().__init__(
            f'The code of workflow "{workflow}" has changed since this instance started. '
            f"Recorded: {recorded}. Now: {current}. "
            "Accept the new code, or deploy the old code again; the instance then continues."
        )


class UnknownWorkflowError(RepriseError, KeyError):
    """No workflow of this name is declared in this process. A KeyError, so that `in` and `get` of the registry
    work.

    Check the spelling: `known` lists all names. Add the app with its `workflows.py` to INSTALLED_APPS, or the
    module to REPRISE["MODULES"].
    """

    __str__ = Exception.__str__  # KeyError's own shows the message as a quoted key

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        self.name = name
        self.known = sorted(known)
        near = difflib.get_close_matches(name[:100], self.known, n=1)
        hint = f'Did you mean "{near[0]}"?' if near else f"Known workflows: {_some(self.known)}."
        super().__init__(
            f"There is no workflow {shown(name)}. {hint} "
            "Workflows are declared in the workflows.py of an installed app."
        )


class DeclarationError(RepriseError, TypeError):
    """The declaration of a workflow, step or event is invalid; raised at import.

    Correct the declaration: `field` names the option and `rule` what it must be.
    """

    def __init__(self, what: str, field: str, rule: str) -> None:
        self.what = what
        self.field = field
        self.rule = rule
        super().__init__(f"Invalid declaration: {what}: {field}: {rule}")


def _some(names: Sequence[str], most: int = 20) -> str:
    more = f", and {len(names) - most:,} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more


class ScheduleNotFoundError(RepriseError, LookupError):
    """The workflow has no schedule of that name, or its row is gone.

    List the schedules with `manage.py workflow schedules`. A cluster writes the row of a new schedule when it
    starts.
    """

    def __init__(self, workflow: str, schedule: str) -> None:
        self.workflow = workflow
        self.schedule = schedule
        super().__init__(f'Workflow "{workflow}" has no schedule "{schedule}".')


class ScheduleNotDeclaredError(RepriseError):
    """The code no longer declares the schedule, so it starts nothing.

    Start an instance of the workflow instead, or declare the schedule again.
    """

    def __init__(self, workflow: str, schedule: str) -> None:
        self.workflow = workflow
        self.schedule = schedule
        super().__init__(
            f'Workflow "{workflow}" no longer declares schedule "{schedule}", so it starts nothing. '
            "Start an instance of the workflow instead."
        )


class WorkerNotFoundError(RepriseError, LookupError):
    """No worker or cluster of that name was seen in the last minute.

    List them with `manage.py workflow workers list`. A name is the host and the process id.
    """

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        self.known = tuple(known)
        super().__init__(f'There is no worker "{name}". There are: {_some(self.known)}.')
