"""Errors of an instance, for those who start and control it."""

import difflib
from collections.abc import Sequence

from engine.values.error_record import ErrorRecord, cut
from engine.values.errors.base import RepriseError, shown
from engine.values.states import FINAL

NEAR_AMONG = 500  # names: to compare with thousands takes seconds


class InstanceExistsError(RepriseError):
    """An instance was to be started with an id that another instance of the workflow has. Nothing was started.

    Choose another id, or call `get_or_start()`, which returns the instance that has it.
    """

    def __init__(self, workflow: str, id: str) -> None:
        self.workflow = workflow
        self.id = id
        super().__init__(
            f'Workflow "{workflow}" already has an instance "{id}". Choose another id, or use get_or_start().'
        )


class InstanceNotFoundError(RepriseError, LookupError):
    """The workflow has no instance with that id: it was never started, was deleted, or belongs to another workflow.

    Check the workflow and the id: ids are unique per workflow only. Use `get_or_start()` if it may be missing.
    """

    def __init__(self, workflow: str, id: str) -> None:
        self.workflow = workflow
        self.id = id
        super().__init__(f'Workflow "{workflow}" has no instance {shown(id)}. Ids are unique per workflow.')


class InstanceFinishedError(RepriseError):
    """The instance is final, and what was asked needs one that is not. Nothing was changed.

    Restart the instance if it must run again; otherwise ignore the request, which came too late.
    """

    def __init__(self, workflow: str, id: str, status: str, action: str) -> None:
        self.workflow = workflow
        self.id = id
        self.status = status
        self.action = action
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" is {status}, so {action} is no longer possible. '
            "Only a restart leaves a final status."
        )


class RollbackNotFailedError(RepriseError):
    """The instance has no failed rollback, so there is none to retry. Nothing was changed.

    Look at `rollback` of the instance first: only `failed` can be retried. To run the rollbacks of an open
    instance, terminate it with `rollback=True`.
    """

    def __init__(self, workflow: str, id: str, status: str, rollback: str) -> None:
        self.workflow = workflow
        self.id = id
        self.status = status
        self.rollback = rollback
        state = f"its rollback is {rollback}" if rollback else "it has no rollback"
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" is {status}, and {state}. Only a rollback that failed can be '
            "retried."
        )


class NothingToRetryError(RepriseError):
    """No step of the instance waits for its next attempt, so there is no back-off to end. Nothing was changed.

    Read in the message what the instance does instead. Call `retry_now()` on the child, if a child backs off.
    """

    def __init__(self, workflow: str, id: str, status: str, doing: str) -> None:
        self.workflow = workflow
        self.id = id
        self.status = status
        self.doing = doing
        super().__init__(f'Instance "{id}" of workflow "{workflow}" does not back off: {doing}.')


class NothingToWakeError(RepriseError):
    """The instance does not sleep, or the step that was named does not. Nothing was changed.

    Read in the message what the instance does instead. Only `sleep` and `sleep_until` can be ended early: send the
    event that it waits for, answer its request, or wake the child.
    """

    def __init__(self, workflow: str, id: str, status: str, doing: str, step: str | None = None) -> None:
        self.workflow = workflow
        self.id = id
        self.status = status
        self.doing = doing
        self.step = step
        if step is not None:
            self.field = "step"
        what = "does not sleep" if step is None else f"does not sleep at {cut(step, 300)}"
        super().__init__(f'Instance "{id}" of workflow "{workflow}" {what}: {doing}.')


class InstancePausedError(RepriseError):
    """The instance is paused, so nothing of it can continue now. Nothing was changed.

    Resume it first; then ask again.
    """

    def __init__(self, workflow: str, id: str, status: str, action: str) -> None:
        self.workflow = workflow
        self.id = id
        self.status = status
        self.action = action
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" is {"paused" if status == "paused" else "being paused"}. '
            f"Resume it first, then {action}."
        )


class StepNotFoundError(RepriseError, LookupError):
    """The present generation has no such step at its top level, so it cannot be restarted from there. Nothing was
    changed.

    Pick one of the steps that the message lists, with its `count` and `kind`, or restart from the start.
    """

    field = "from_step"

    def __init__(
        self,
        workflow: str,
        id: str,
        step: tuple[object, object, object],
        known: Sequence[tuple[str, str, int]],
    ) -> None:
        self.workflow = workflow
        self.id = id
        self.step = step
        self.known = list(known)
        names = {_step_shown(*one): None for one in self.known}
        near = difflib.get_close_matches(_step_shown(*step), [*names][:NEAR_AMONG], n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        listed = ", ".join([*names][:20]) or "none"
        more = f", and {len(names) - 20:,} more" if len(names) > 20 else ""
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" has no step {_step_shown(*step)} to restart from.{hint} '
            f"Its steps: {listed}{more}."
        )


class RestartError(RepriseError):
    """A step that the restart would keep has been rolled back, is being rolled back, or failed to be. Nothing was
    changed.

    Restart from the step that the message names or an earlier one, or from the start.
    """

    def __init__(
        self, workflow: str, id: str, step: str, undone: str, first_undone: str, rollback: str = "complete"
    ) -> None:
        self.workflow = workflow
        self.id = id
        self.step = step
        self.undone = undone
        self.first_undone = first_undone
        self.rollback = rollback
        happened = {
            "failed": f"the rollback of step {undone}, which is before it, failed",
            "running": f"step {undone}, which is before it, is being rolled back",
        }
        why = happened.get(rollback, f"step {undone}, which is before it, has been rolled back")
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" cannot be restarted from step {step}: {why}. '
            f"Restart it from step {first_undone} or an earlier one, or from the start."
        )


class StepNotFailedError(RepriseError):
    """The instance has not ended because of a step, so there is none to retry. Nothing was changed.

    Look at `status` and `error` first: only an errored instance whose error names a step can be retried there. Else
    restart it, from the start or from a step.
    """

    def __init__(self, workflow: str, id: str, status: str) -> None:
        self.workflow = workflow
        self.id = id
        self.status = status
        why = "but not because of a step" if status == "errored" else "not errored"
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" is {status}, {why}. Only a step that failed for good and ended '
            "its instance can be retried; else restart the instance."
        )


class KeysSpentError(RepriseError):
    """A step that would run again with its idempotency key has been rolled back, is being rolled back, or failed to
    be. Nothing was changed.

    Restart the instance with new keys: a service that knows the old one would take the new attempt for the one that
    was undone, and do nothing.
    """

    def __init__(self, workflow: str, id: str, step: str, rollback: str) -> None:
        self.workflow = workflow
        self.id = id
        self.step = step
        self.rollback = rollback
        happened = {
            "failed": "its rollback failed",
            "running": "it is being rolled back",
            "other": "it ran before a restart that made new keys",
        }
        why = happened.get(rollback, "it has been rolled back")
        super().__init__(
            f'Step {step} of instance "{id}" of workflow "{workflow}" cannot run again with the same idempotency key: '
            f"{why}. Restart the instance with new keys."
        )


class InstanceNotFinishedError(RepriseError):
    """An instance that is still open was to be deleted. Nothing was changed.

    Terminate it, then delete it.
    """

    def __init__(self, workflow: str, id: str, status: str) -> None:
        self.workflow = workflow
        self.id = id
        self.status = status
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" is {status}. Only a finished instance can be deleted; terminate '
            "it first."
        )


class InstanceNotCompleteError(RepriseError):
    """The instance has no result: it has not finished, or `error` says why it failed.

    Check `status` before calling `result()`. If it is still open, call `refresh()` later, or wait for it with
    `step.wait_for_instance`.
    """

    def __init__(self, workflow: str, id: str, status: str, error: ErrorRecord | None = None) -> None:
        self.workflow = workflow
        self.id = id
        self.status = status
        self.error = error
        why = f": {error.type}: {error.message}" if error is not None else ""
        advice = (
            "" if status in FINAL else " Read it again when it has finished: instance.refresh().result()."
        )
        super().__init__(
            cut(
                f'Instance "{id}" of workflow "{workflow}" has no result: it is {status}{why}.{advice}', 8_000
            )
        )


class InstanceNeededError(RepriseError):
    """Another instance waits for the outcome of this one, so it cannot be deleted yet. Nothing was changed.

    Try again once the instance that the message names has continued or finished, or terminate that one first.
    """

    def __init__(self, workflow: str, id: str, by_workflow: str, by_id: str) -> None:
        self.workflow = workflow
        self.id = id
        self.by_workflow = by_workflow
        self.by_id = by_id
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" cannot be deleted yet: instance "{by_id}" of workflow '
            f'"{by_workflow}" still has to receive its outcome. Try again once that instance has continued or finished.'
        )


class DedupConflictError(RepriseError):
    """The dedup key was used before, for an event with another type or payload. The first event is kept.

    Send the event with another key. Derive the key from the message itself, such as its id at the sender, so that
    only a repeat has the same key.
    """

    def __init__(self, workflow: str, id: str, dedup_key: str) -> None:
        self.workflow = workflow
        self.id = id
        self.dedup_key = dedup_key
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" already has a different event with dedup key "{dedup_key}". '
            "The first event is kept; send this one with another key."
        )


def _step_shown(kind: object, name: object, count: object) -> str:
    number = "" if count == 1 else f" #{count}"
    return cut(f'{kind} "{name}"{number}', 300)


class GenerationNotFoundError(RepriseError, LookupError):
    """The instance has no generation of that number.

    Pick a number from 1 to the current generation, which the message names.
    """

    def __init__(self, workflow: str, id: str, number: int, current: int) -> None:
        self.workflow, self.id, self.number = workflow, id, number
        super().__init__(f"{workflow}/{id} has no generation {number}. The current one is {current}.")
