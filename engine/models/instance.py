"""One run of a workflow."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.urls import reverse

from engine.models.event import Event
from engine.models.fields import JsonField
from engine.models.instance_table import CONSTRAINTS, INDEXES
from engine.models.steering import Steering
from engine.models.step import Step
from engine.models.typed import Output_co, Typed
from engine.values.between_steps import async_twin
from engine.values.states import FINAL, InstanceStatus
from engine.values.system import PREFIX
from engine.values.unchanged import UNCHANGED

if TYPE_CHECKING:
    from django.db.models.fields.related_descriptors import RelatedManager

    from engine.models.audit import Audit


class InstanceQuerySet(models.QuerySet["Instance"]):
    def open(self) -> InstanceQuerySet:
        """Leave out finished instances."""
        return self.exclude(status__in=FINAL)

    def of_users(self) -> InstanceQuerySet:
        """Leave out the instances of Reprise's own workflows."""
        return self.exclude(workflow__startswith=PREFIX)


class Instance(models.Model, Typed[Output_co]):
    """One run of a workflow: its input, its state, and which worker may write for it.

    Its methods control it; read its columns freely, and never save it.
    """

    # `wake_at` drives everything: queued → now, or when it is to start; sleeping, backing off, waiting with a timeout
    # → the deadline; held by a worker → the end of its lease; paused and finished → NULL. A due instance is claimed if
    # its workflow's limit allows it; until then it stays due, as queued.

    # Annotated for type checkers without the plugin of django-stubs, which infers what columns hold.
    key: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    workflow: models.CharField[str, str] = models.CharField(max_length=64)
    """The name of its workflow."""
    id: models.CharField[str, str] = models.CharField(max_length=100)
    """Its id, unique per workflow."""
    generation: models.IntegerField[int, int] = models.IntegerField(db_default=1, default=1)
    """The number of its current generation, from 1; a restart adds one."""
    # The generation whose idempotency keys the current one uses, if a restart kept them; NULL: its own.
    keys_from = models.IntegerField(null=True)
    status: models.CharField[str, str] = models.CharField(max_length=20, default=InstanceStatus.QUEUED)
    """Its status: see docs/reference/states.md."""
    waiting_for: models.CharField[str, str] = models.CharField(
        max_length=8, default="", db_default="", blank=True
    )
    """What a waiting instance waits for: sleep, event, retry or child. Else empty."""
    rollback: models.CharField[str, str] = models.CharField(
        max_length=8, default="", db_default="", blank=True
    )
    """The state of its rollbacks: running, complete or failed. Empty if none has started."""

    params: models.Field[Any, Any] = JsonField()
    """The input, as JSON."""
    output: models.Field[Any, Any] = JsonField(null=True)
    """The output, as JSON, if it is complete."""
    error: models.Field[Any, Any] = JsonField(null=True)
    """Why it failed: an object with type, message, details, traceback, and the failed step."""
    # NULL is not an empty text here: the index has those only in which something failed.
    fingerprint = models.CharField(max_length=16, null=True)  # noqa: DJ001
    """The group of its latest failure, also if it went on after that; NULL if nothing has failed."""
    pause_reason: models.Field[Any, Any] = JsonField(null=True)
    """Why the engine paused it, in the form of an error; NULL if a person did. Cleared when it continues,
    kept if it ends while paused."""
    unreached = ArrayField(models.IntegerField(), default=list, db_default=[])
    """The numbers of the steps that the code no longer reached when it ended."""
    tags: ArrayField[list[str], list[str]] = ArrayField(
        models.CharField(max_length=100), default=list, db_default=[]
    )
    """Its labels."""
    started_by: models.CharField[str, str] = models.CharField(
        max_length=150, default="", db_default="", blank=True
    )
    """The user, program, schedule or parent that started it."""
    code = models.CharField(max_length=64, default="", db_default="", blank=True)
    """The fingerprint of the handler that it runs with."""

    wake_at = models.DateTimeField(null=True)
    """When it is due: now or its start if queued, the end of a sleep or wait, or the end of the lease while a worker
    holds it. NULL if nothing is planned."""
    deadline_at = models.DateTimeField(null=True)
    """When the timeout of its workflow ends it."""
    owner = models.IntegerField(null=True)
    fence = models.BigIntegerField(db_default=0, default=0)
    signals = models.BigIntegerField(db_default=0, default=0)
    # Its worker died, perhaps because of it: it runs alone until it progresses, or has run for 10 s.
    quarantined = models.BooleanField(db_default=False, default=False)

    # The step that started it, if any, by value: an instance may outlive its parent. `is_tied`: the parent waits for
    # it, and its end also ends this instance.
    parent_key = models.BigIntegerField(null=True)
    parent_generation = models.IntegerField(null=True)
    parent_step = models.IntegerField(null=True)
    is_tied = models.BooleanField(db_default=False, default=False)
    depth = models.IntegerField(db_default=0, default=0)
    # Its parent, children or waiting instances still have to be notified of its end (`steer/relations.py`).
    notify_pending = models.BooleanField(db_default=False, default=False)
    # The final status that it gets after its rollbacks.
    ends_as = models.CharField(max_length=10, default="", db_default="", blank=True)

    # The pause of its workflow (`PauseRow.key`) in which it was released; NULL in its next generation.
    released_in = models.BigIntegerField(null=True)

    # How long it is kept after its end, if it has a rule of its own: seconds by final status, null means forever.
    retention = JsonField(null=True)

    created_at: models.DateTimeField[datetime, datetime] = models.DateTimeField(db_default=Now())
    """When it was started."""
    starts_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    """When it is due for the first time, if it was started for later; NULL: at once. A restart clears it."""
    started_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    """When a worker first ran it. A restart from the start begins anew."""
    paused_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    """When it was paused."""
    finished_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    """When it ended."""

    objects = InstanceQuerySet.as_manager()
    steering: ClassVar[Steering[Instance[Any], Event]]

    if TYPE_CHECKING:
        steps: RelatedManager[Step]
        events: RelatedManager[Event]

    class Meta:
        db_table = "engine_instance"
        constraints = CONSTRAINTS
        indexes = INDEXES

    def __str__(self) -> str:
        return f"{self.workflow}/{self.id}"

    def get_absolute_url(self) -> str:
        """Return the path of its page in the Studio. Raises NoReverseMatch if the Studio is not in the URLs."""
        return reverse("studio:instance", args=[self.workflow, self.id])

    @property
    def is_finished(self) -> bool:
        """Whether the status is complete, errored or terminated."""
        return self.status in FINAL

    @property
    def last_problem(self) -> Any:
        """The recorded error or, while it is open, the reason why the engine paused it."""
        return (
            _first(self.error, self.pause_reason)
            if self.is_finished
            else _first(self.pause_reason, self.error)
        )

    def refresh(self) -> Instance[Output_co]:
        """Read the row again and return this object."""
        self.refresh_from_db()
        return self

    def result(self) -> Output_co:
        """Return the output as the type that the workflow returns; `output` is its JSON form.

        It reads this object, not the database: call `refresh()` first. Raises InstanceNotCompleteError in every
        other status, UnknownWorkflowError if this code does not have the workflow, and InvalidValueError if its
        return type no longer accepts what is stored.
        """
        found: Output_co = self.steering.result(self)
        return found

    def pause(self, *, by: Any = None, reason: str = "") -> Instance[Output_co]:
        """Stop driving the instance: at once, or as soon as its running bodies have ended and are recorded.

        Does nothing if there is nothing to pause. Returns the instance in its new state. Raises
        InstanceNotFoundError if it has been deleted.
        """
        return self.steering.pause(self, by=by, reason=reason)

    def resume(self, *, by: Any = None, reason: str = "") -> Instance[Output_co]:
        """Continue after a pause, or cancel a pause that has not taken effect yet.

        Sleeps, back-offs and the timeouts of waits are extended by the time paused; fixed moments are not. Does
        nothing if there is nothing to resume. Returns the instance in its new state. Raises StepExhaustedError if it
        has to be decided first what follows the used-up attempts of a step, and InstanceNotFoundError if it has been
        deleted.
        """
        return self.steering.resume(self, by=by, reason=reason)

    def terminate(self, *, rollback: bool = False, by: Any = None, reason: str = "") -> Instance[Output_co]:
        """End the instance now, and the children that it waits for. A running body is cancelled, and its result is
        refused.

        With `rollback`, its steps are rolled back first, as after an error; it is terminated after that, or at once
        if there is nothing to roll back. Returns the instance in its new state. Raises InstanceFinishedError if it
        has ended, and InstanceNotFoundError if it has been deleted.
        """
        return self.steering.terminate(self, rollback=rollback, by=by, reason=reason)

    def retry_rollback(self, *, by: Any = None, reason: str = "") -> Instance[Output_co]:
        """Retry the failed rollback with a new set of attempts, then run the remaining ones and end as before.

        Returns the instance in its new state. Raises RollbackNotFailedError if none has failed, and
        InstanceNotFoundError if it has been deleted.
        """
        return self.steering.retry_rollback(self, by=by, reason=reason)

    def retry_now(self, *, by: Any = None, reason: str = "") -> Instance[Output_co]:
        """End the back-off of the steps that wait for their next attempt: it starts now.

        Only the waiting ends: attempts, options and idempotency keys stay. That includes rollbacks and nested steps,
        not children. Returns the instance in its new state. Raises NothingToRetryError if no step backs off,
        InstancePausedError while it is paused, and InstanceNotFoundError if it has been deleted.
        """
        return self.steering.retry_now(self, by=by, reason=reason)

    def wake_now(
        self, step: str | None = None, count: int = 1, *, by: Any = None, reason: str = ""
    ) -> Instance[Output_co]:
        """End the sleeps of the instance now: all that are open, or the one of this name and count.

        Returns the instance in its new state. Raises NothingToWakeError if there is none: waits for events, answers
        and other instances cannot be ended. Raises InstancePausedError while it is paused, and InstanceNotFoundError if
        it has been deleted.
        """
        return self.steering.wake_now(self, step, count, by=by, reason=reason)

    def accept_code(self, *, by: Any = None, reason: str = "") -> Instance[Output_co]:
        """Let the instance continue with the current code of its workflow, and resume it if the change had paused
        it.

        Does nothing if it uses that code anyway. Returns the instance in its new state. Raises
        InstanceFinishedError if it has ended, and UnknownWorkflowError if its workflow is not declared.
        """
        return self.steering.accept_code(self, by=by, reason=reason)

    def restart(
        self,
        from_step: str | None = None,
        count: int = 1,
        kind: str = "do",
        *,
        params: Any = UNCHANGED,
        keys: Literal["new", "same"] = "new",
        by: Any = None,
        reason: str = "",
    ) -> Instance[Output_co]:
        """Start a new generation of the instance, whatever its status. Earlier generations are kept unchanged.

        With `from_step` (a top-level step, by name, count and kind), it keeps the outcomes of the steps that
        started before that one, and runs it and all later ones again. Without, it keeps nothing, and buffered
        events are dropped; then `params` may give this generation others, validated as at a start. With
        `keys="same"`, steps that run again keep their idempotency keys, so that a service that knows a key does
        nothing twice.

        Returns the instance in its new state. Raises StepNotFoundError, RestartError if a step that it would keep
        was rolled back, KeysSpentError if a step that would keep its key was, InstanceNotFoundError, and for params
        the errors of `start`; then nothing is changed.
        """
        steering = self.steering
        return steering.restart(self, from_step, count, kind, params=params, keys=keys, by=by, reason=reason)

    def retry_step(
        self, step: str | None = None, count: int = 1, *, by: Any = None, reason: str = ""
    ) -> Instance[Output_co]:
        """Run the step again that has failed for good and ended the instance, or whose attempts are used up and have
        paused it, with all its attempts and the same idempotency key.

        A paused instance retries all steps that wait for a decision, or the one of this name and count, and goes on
        in the same generation when nothing is left to decide. If it has ended, a new generation keeps what the
        handler had received before the failure; everything after that runs again, with the same keys.

        Returns the instance in its new state. Raises StepNotExhaustedError if no such step waits for a decision,
        StepNotFailedError if it has not ended because of a step, KeysSpentError or RestartError if rollbacks have
        run, and InstanceNotFoundError; then nothing is changed.
        """
        return self.steering.retry_step(self, step, count, by=by, reason=reason)

    def fail_step(
        self, step: str, count: int = 1, *, by: Any = None, reason: str = ""
    ) -> Instance[Output_co]:
        """Let a step fail whose attempts are used up and have paused the instance: the handler gets its last error.

        The instance goes on when nothing is left to decide. Returns it in its new state. Raises
        StepNotExhaustedError if that step does not wait for a decision, and InstanceNotFoundError.
        """
        return self.steering.fail_step(self, step, count, by=by, reason=reason)

    def skip_step(
        self, step: str, count: int = 1, *, output: Any = None, by: Any = None, reason: str = ""
    ) -> Instance[Output_co]:
        """Complete a step with this output, without running its body again.

        Its attempts are used up, or it waits for the next one, or the instance is paused and no attempt runs. The
        step is never rolled back. Returns the instance in its new state. Raises StepNotSkippableError, for the output
        InvalidValueError or LimitError, and InstanceNotFoundError; then nothing is changed.
        """
        return self.steering.skip_step(self, step, count, output=output, by=by, reason=reason)

    def delete(self, *, by: Any = None, reason: str = "") -> None:  # type: ignore[override]
        """Delete a finished instance with everything it recorded. Its children and its audit trail stay.

        Raises InstanceNotFinishedError, InstanceNotFoundError, and InstanceNeededError while another instance has
        yet to receive its outcome; then nothing is changed.
        """
        self.steering.delete(self, by=by, reason=reason)

    def send_event(
        self,
        type: Any,
        payload: Any = None,
        dedup_key: str | None = None,
        *,
        by: Any = None,
        reason: str = "",
    ) -> Event:
        """Buffer an event for the instance and wake it; return its row. Exactly one wait consumes it, in the order
        of sending.

        `type` is a text or a declared Event. A repeated `dedup_key` returns the first event, even if the instance
        has finished since; with another type or payload it raises DedupConflictError. Raises InstanceFinishedError,
        InstanceNotFoundError, and for invalid input InvalidNameError, InvalidParamsError, InvalidValueError or
        LimitError; then nothing is written.
        """
        return self.steering.send_event(self, type, payload, dedup_key, by=by, reason=reason)

    def add_note(self, text: str, *, by: Any = None) -> Audit:
        """Add a note for people to the instance, whatever its status, and return its row of the audit trail.

        It has up to 4,000 characters. `@name` of an active user is recorded as a mention. Nothing of the instance
        changes. Raises InvalidValueError or LimitError for a text that cannot be stored, and InstanceNotFoundError if
        it has been deleted.
        """
        return self.steering.add_note(self, text, by=by)

    # The async twins, in addition to Django's own (`arefresh_from_db`, …).
    arefresh = async_twin(refresh)
    apause = async_twin(pause)
    aresume = async_twin(resume)
    aterminate = async_twin(terminate)
    aretry_rollback = async_twin(retry_rollback)
    aretry_now = async_twin(retry_now)
    awake_now = async_twin(wake_now)
    aaccept_code = async_twin(accept_code)
    arestart = async_twin(restart)
    aretry_step = async_twin(retry_step)
    afail_step = async_twin(fail_step)
    askip_step = async_twin(skip_step)
    adelete = async_twin(delete)  # type: ignore[arg-type]
    asend_event = async_twin(send_event)
    aadd_note = async_twin(add_note)


def _first(one: Any, other: Any) -> Any:
    return other if one is None else one
