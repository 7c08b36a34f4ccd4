"""The steps of an instance, their attempts, and the log lines of handlers and bodies."""

from __future__ import annotations

from typing import Protocol

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL

from engine.models.fields import JsonField, times
from engine.values.identity import OLD_MILESTONE, milestone_name
from engine.values.states import AttemptStatus, StepKind, StepStatus


class _Current(Protocol):
    """An instance, as far as its steps need it."""

    @property
    def key(self) -> int: ...
    @property
    def generation(self) -> int: ...


_FINAL = ["complete", "errored", "cancelled"]  # as migrations have it


class StepQuerySet(models.QuerySet["Step"]):
    def of(self, instance: _Current) -> StepQuerySet:
        """Return the steps of the current generation."""
        return self.filter(instance_id=instance.key, generation=instance.generation)

    def begun_with_rollback(self) -> StepQuerySet:
        """Return the steps whose body was started and that were recorded with a rollback."""
        has_rollback = RawSQL("options -> 'rollback' IS NOT NULL", (), output_field=BooleanField())
        return self.filter(has_rollback, kind=StepKind.DO, attempts__gt=0)

    def exhausted(self) -> StepQuerySet:
        """Return the steps whose attempts are used up and for which nobody has decided what follows, in order."""
        waiting = self.filter(kind=StepKind.DO, status=StepStatus.WAITING, error__isnull=False)
        return waiting.order_by("seq").defer("output")


class Step(models.Model):
    """A named durable operation of an instance.

    `seq` counts the steps of a generation in the order in which they started; `delivery` is the position at which the
    outcome reached the handler, which every replay repeats. `parent` is the `seq` of the step whose body started this
    one, 0 at the top. `wake_at` is the end of a sleep, a back-off or a wait.
    """

    # No surrogate key and no foreign key in the database: this is the table that every checkpoint writes, and each
    # index and each referential check costs a tenth of a step. The engine deletes steps with their instance.
    pk = models.CompositePrimaryKey("instance_id", "generation", "seq")
    instance = models.ForeignKey(
        "engine.Instance", on_delete=models.CASCADE, related_name="steps", db_constraint=False, db_index=False
    )
    generation = models.IntegerField()
    """The generation to which it belongs."""
    seq = models.IntegerField()
    """Its number in the generation, in the order in which steps started, from 1."""
    parent = models.IntegerField(default=0, db_default=0)
    """The `seq` of the step whose body started it; 0 at the top."""
    kind = models.CharField(max_length=8)
    """Its kind: see docs/reference/states.md."""
    name = models.CharField(max_length=256)
    """Its name."""
    count = models.IntegerField()
    """Which step of that kind and name it is among its siblings, from 1."""

    status = models.CharField(max_length=9)
    """Its status: see docs/reference/states.md."""
    delivery = models.IntegerField(null=True)
    """The position at which its outcome reached the handler; NULL until then."""
    options = JsonField(null=True)
    """The options in force, as JSON; durations in seconds. Of a request: the question."""
    sensitive = models.BooleanField(default=False, db_default=False)
    """Whether its output is never displayed."""
    attempts = models.IntegerField(default=0, db_default=0)
    """How many attempts of its body began."""
    lost = models.IntegerField(default=0, db_default=0)
    """How many of them ended with their worker."""
    event_types = ArrayField(models.CharField(max_length=100), null=True)
    """The types of events that it waits for."""
    wake_at = models.DateTimeField(null=True)
    """When its sleep, back-off or wait ends."""
    wake_is_fixed = models.BooleanField(default=False, db_default=False)
    output = JsonField(null=True)
    """Its result, as JSON."""
    error = JsonField(null=True)
    """Why it failed: an object with type, message, details and traceback."""
    rollback = models.CharField(max_length=8, default="", db_default="", blank=True)
    """The state of its rollback: running, complete or failed. Empty if none has started."""
    kept_from = models.IntegerField(null=True)
    """The generation in which it ran, if a restart kept it."""
    started_at = models.DateTimeField()
    """When it started."""
    finished_at = models.DateTimeField(null=True)
    """When it ended."""

    objects = StepQuerySet.as_manager()

    class Meta:
        db_table = "engine_step"
        constraints = [
            times("engine_step", "finished_at", "started_at"),
            models.CheckConstraint(condition=Q(kind__in=[str(k) for k in StepKind]), name="engine_step_kind"),
            models.CheckConstraint(
                condition=Q(status__in=[str(s) for s in StepStatus]), name="engine_step_status"
            ),
            models.CheckConstraint(
                condition=Q(status__in=_FINAL, finished_at__isnull=False)
                | (~Q(status__in=_FINAL) & Q(finished_at__isnull=True, delivery__isnull=True)),
                name="engine_step_finished_once",
            ),
            models.CheckConstraint(
                condition=~Q(kind="sleep", status="waiting") | Q(wake_at__isnull=False),
                name="engine_step_sleeper_has_wake_up",
            ),
            models.CheckConstraint(
                condition=Q(wake_at__isnull=True)
                | Q(wake_at__gte="1970-01-01T00:00:00Z", wake_at__lt="9999-12-31T00:00:00Z"),
                name="engine_step_wake_at_readable",
            ),
        ]

    def __str__(self) -> str:
        said = self.output if self.is_old_milestone and "output" not in self.get_deferred_fields() else None
        if isinstance(said, dict):
            return milestone_name(str(said.get("message")))
        return self.name if self.count == 1 else f"{self.name} #{self.count}"

    @property
    def is_exhausted(self) -> bool:
        """Whether its attempts are used up and nobody has decided yet what follows."""
        return self.status == StepStatus.WAITING and self.error is not None

    @property
    def is_old_milestone(self) -> bool:
        """Return whether it is a milestone from before milestones were named after their message."""
        return (self.kind, self.name) == (StepKind.PROGRESS, OLD_MILESTONE)


def exhausted_label(step: Step) -> str:
    """Return the name of such a step in messages. What encloses it, if anything, is a map."""
    return f"{step.name}[{step.count - 1}]" if step.parent else str(step)


class Attempt(models.Model):
    """One execution of a step's body (or, with phase `rollback`, of its rollback), recorded before it starts."""

    pk = models.CompositePrimaryKey("instance_id", "generation", "step_seq", "phase", "number")
    instance = models.ForeignKey(
        "engine.Instance",
        on_delete=models.CASCADE,
        related_name="attempts",
        db_constraint=False,
        db_index=False,
    )
    generation = models.IntegerField()
    """The generation to which it belongs."""
    step_seq = models.IntegerField()
    """The `seq` of its step."""
    phase = models.CharField(max_length=8, default="do", db_default="do")
    """do: the body; rollback: the rollback."""
    number = models.IntegerField()
    """Its number within the phase, from 1."""
    status = models.CharField(max_length=9)
    """Its status: see docs/reference/states.md."""
    worker = models.CharField(max_length=100, default="", db_default="", blank=True)
    """The worker that ran it."""
    # It ran alone in quarantine: if its worker died of it, that counts as a crash.
    quarantined = models.BooleanField(default=False, db_default=False)
    error = JsonField(null=True)
    """Why it failed: an object with type, message, details and traceback."""
    started_at = models.DateTimeField()
    """When it started."""
    finished_at = models.DateTimeField(null=True)
    """When it ended."""
    # NULL is not an empty text here: the index has failures only.
    fingerprint = models.CharField(max_length=16, null=True)  # noqa: DJ001
    """The group of failures that it belongs to; NULL if it did not fail."""
    # `finished_at` of a failure. An index on that column would have to be written for each attempt that succeeds.
    failed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "engine_attempt"
        constraints = [
            times("engine_attempt", "failed_at", "finished_at", "started_at"),
            models.CheckConstraint(
                condition=Q(status__in=[str(s) for s in AttemptStatus]), name="engine_attempt_status"
            ),
            models.CheckConstraint(condition=Q(phase__in=["do", "rollback"]), name="engine_attempt_phase"),
            models.CheckConstraint(
                condition=Q(status="running", finished_at__isnull=True)
                | (~Q(status="running") & Q(finished_at__isnull=False)),
                name="engine_attempt_finished",
            ),
        ]
        indexes = [
            # The failures of a group, by time: the latest, and how many since a moment.
            models.Index(
                fields=["fingerprint", "failed_at"],
                condition=Q(fingerprint__isnull=False),
                name="engine_attempt_failed",
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number}"


class Log(models.Model):
    """A structured line of an instance's log.

    Lines of the handler have a `position` among the handler's lines: a replay logs them again, and the engine keeps
    each once. Lines of a body have their step and attempt. Lines that the engine itself logs once have a negative
    position.
    """

    key = models.BigAutoField(primary_key=True)
    instance = models.ForeignKey(
        "engine.Instance", on_delete=models.CASCADE, related_name="logs", db_constraint=False, db_index=False
    )
    generation = models.IntegerField()
    """The generation to which it belongs."""
    position = models.IntegerField(null=True)
    step_seq = models.IntegerField(null=True)
    """The `seq` of the step whose body wrote it; NULL for the handler."""
    attempt = models.IntegerField(null=True)
    """The number of the attempt whose body wrote it."""
    level = models.CharField(max_length=8)
    """debug, info, warning or error."""
    message = models.TextField()
    """The text."""
    fields = JsonField(null=True)
    """The fields given with it, as JSON."""
    at = models.DateTimeField()
    """When it was written."""

    class Meta:
        db_table = "engine_log"
        constraints = [
            times("engine_log", "at"),
            models.UniqueConstraint(
                fields=["instance", "generation", "position"],
                condition=models.Q(position__isnull=False),
                name="engine_log_once",
            ),
        ]
        indexes = [
            # An instance's log in order.
            models.Index(fields=["instance", "key"], name="engine_log_order"),
        ]

    def __str__(self) -> str:
        return self.message
