"""The steps of an instance, their attempts, and the log lines of handlers and bodies."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL

from engine.models.fields import JsonField, times
from engine.values.identity import OLD_MILESTONE, milestone_name
from engine.values.states import AttemptStatus, StepKind, StepStatus

_FINAL = ["complete", "errored", "cancelled"]  # as migrations have it


class StepQuerySet(models.QuerySet["Step"]):
    def begun_with_rollback(self) -> StepQuerySet:
        """Return the steps whose body was started and that were recorded with a rollback."""
        has_rollback = RawSQL("options -> 'rollback' IS NOT NULL", (), output_field=BooleanField())
        return self.filter(has_rollback, kind=StepKind.DO, attempts__gt=0)


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
    seq = models.IntegerField()
    parent = models.IntegerField(default=0, db_default=0)
    kind = models.CharField(max_length=8)
    name = models.CharField(max_length=256)
    count = models.IntegerField()

    status = models.CharField(max_length=9)
    delivery = models.IntegerField(null=True)
    options = JsonField(null=True)
    sensitive = models.BooleanField(default=False, db_default=False)
    attempts = models.IntegerField(default=0, db_default=0)
    lost = models.IntegerField(default=0, db_default=0)
    event_types = ArrayField(models.CharField(max_length=100), null=True)
    wake_at = models.DateTimeField(null=True)
    wake_is_fixed = models.BooleanField(default=False, db_default=False)
    output = JsonField(null=True)
    error = JsonField(null=True)
    rollback = models.CharField(max_length=8, default="", db_default="", blank=True)
    # The generation in which it ran, if a restart kept it.
    kept_from = models.IntegerField(null=True)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

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
    def is_old_milestone(self) -> bool:
        """Return whether it is a milestone from before milestones were named after their message."""
        return (self.kind, self.name) == (StepKind.PROGRESS, OLD_MILESTONE)


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
    step_seq = models.IntegerField()
    phase = models.CharField(max_length=8, default="do", db_default="do")
    number = models.IntegerField()
    status = models.CharField(max_length=9)
    worker = models.CharField(max_length=100, default="", db_default="", blank=True)
    # It ran alone in quarantine: if its worker died of it, that counts as a crash.
    quarantined = models.BooleanField(default=False, db_default=False)
    error = JsonField(null=True)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "engine_attempt"
        constraints = [
            times("engine_attempt", "finished_at", "started_at"),
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
    position = models.IntegerField(null=True)
    step_seq = models.IntegerField(null=True)
    attempt = models.IntegerField(null=True)
    level = models.CharField(max_length=8)
    message = models.TextField()
    fields = JsonField(null=True)
    at = models.DateTimeField()

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
