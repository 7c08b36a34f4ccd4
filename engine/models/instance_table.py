"""The rules of the table of instances, and what each of its indexes is for."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Collate, Lower

from engine.models.fields import times
from engine.values.states import FINAL, InstanceStatus, RollbackState, WaitingFor

_FINAL = sorted(str(status) for status in FINAL)  # as migrations have it

CONSTRAINTS: list[models.BaseConstraint] = [
    times("engine_instance", "created_at", "deadline_at", "finished_at", "paused_at", "started_at"),
    times("engine_instance_start", "starts_at"),
    models.UniqueConstraint(fields=["workflow", "id"], name="engine_instance_id"),
    models.CheckConstraint(
        condition=Q(id__regex=r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$"), name="engine_instance_id_form"
    ),
    models.CheckConstraint(
        condition=Q(status__in=[str(s) for s in InstanceStatus]), name="engine_instance_status"
    ),
    models.CheckConstraint(
        condition=Q(rollback__in=[str(s) for s in RollbackState]), name="engine_instance_rollback"
    ),
    models.CheckConstraint(
        condition=Q(status="waiting", waiting_for__in=[str(w) for w in WaitingFor])
        | (~Q(status="waiting") & Q(waiting_for="")),
        name="engine_instance_waiting_says_for_what",
    ),
    models.CheckConstraint(
        condition=~Q(status="waiting", waiting_for__in=["sleep", "retry"]) | Q(wake_at__isnull=False),
        name="engine_instance_sleeper_has_wake_up",
    ),
    models.CheckConstraint(
        condition=Q(owner__isnull=True) | Q(wake_at__isnull=False),
        name="engine_instance_owner_has_lease",
    ),
    models.CheckConstraint(
        condition=Q(status__in=["running", "waiting_for_pause"], owner__isnull=False)
        | (~Q(status__in=["running", "waiting_for_pause"]) & Q(owner__isnull=True)),
        name="engine_instance_running_has_owner",
    ),
    models.CheckConstraint(
        condition=~Q(status="paused") | Q(wake_at__isnull=True, paused_at__isnull=False),
        name="engine_instance_paused_is_still",
    ),
    models.CheckConstraint(
        condition=Q(status__in=_FINAL, finished_at__isnull=False, wake_at__isnull=True)
        | (~Q(status__in=_FINAL) & Q(finished_at__isnull=True)),
        name="engine_instance_finished_is_still",
    ),
    models.CheckConstraint(
        condition=Q(wake_at__isnull=True)
        | Q(wake_at__gte="1970-01-01T00:00:00Z", wake_at__lt="9999-12-31T00:00:00Z"),
        name="engine_instance_wake_at_readable",
    ),
]
INDEXES = [
    # The claim, and the wait for the next due one: without those that a worker holds, which only reaping
    # takes back (by owner); a thousand of them would stand before the first that is free.
    models.Index(
        fields=["workflow", "wake_at"],
        condition=Q(wake_at__isnull=False, owner__isnull=True),
        name="engine_instance_due",
    ),
    # Reaping what a dead worker held; the heartbeat and the signals of a live one.
    models.Index(fields=["owner"], condition=Q(owner__isnull=False), name="engine_instance_owned"),
    # The same for quarantined ones: few, and not to be looked for among all that is due.
    models.Index(
        fields=["workflow", "wake_at"],
        condition=Q(quarantined=True) & Q(owner__isnull=True),
        name="engine_instance_quarantined",
    ),
    # Those that have run before and are due again: they are claimed before new ones if the workflow has a
    # limit.
    models.Index(
        fields=["workflow", "wake_at"],
        condition=Q(wake_at__isnull=False, owner__isnull=True, started_at__isnull=False),
        name="engine_instance_woken",
    ),
    # What was released while its workflow is paused: few, and not to be looked for among all that is held.
    models.Index(
        fields=["released_in", "wake_at"],
        condition=Q(released_in__isnull=False, wake_at__isnull=False, owner__isnull=True),
        name="engine_instance_released",
    ),
    # Those with retention rules of their own.
    models.Index(fields=["key"], condition=Q(retention__isnull=False), name="engine_instance_own_retention"),
    # A parent's children.
    models.Index(
        fields=["parent_key"], condition=Q(parent_key__isnull=False), name="engine_instance_children"
    ),
    # Those whose end others are still to be notified of.
    models.Index(fields=["key"], condition=Q(notify_pending=True), name="engine_instance_notify_pending"),
    # The Studio's lists by workflow and status, newest first, and the counts by status.
    models.Index(fields=["workflow", "status", "-key"], name="engine_instance_list"),
    # The search for IDs by prefix, ignoring case, over all rows.
    models.Index(Collate(Lower("id"), "C"), name="engine_instance_id_start"),
    # What a person has started of a workflow, newest first.
    models.Index(
        fields=["started_by", "workflow", "-key"],
        condition=~Q(started_by=""),
        name="engine_instance_started_by",
    ),
    # What needs attention: recent failures, and instances that the engine paused.
    models.Index(
        fields=["workflow", "-finished_at"],
        condition=Q(status="errored"),
        include=["fingerprint", "started_by", "rollback", "key"],
        name="engine_instance_failed",
    ),
    models.Index(
        fields=["workflow", "-key"],
        condition=Q(status="paused", pause_reason__isnull=False),
        name="engine_instance_pause_reason",
    ),
    # What waits for what, newest first: counts and lists, and retries, which need attention.
    models.Index(
        fields=["workflow", "waiting_for", "-key"],
        condition=Q(status="waiting"),
        include=["fingerprint", "started_by", "wake_at"],
        name="engine_instance_waiting",
    ),
    # The instances of a group of failures: how many are errored, wait for a retry or went on, and the latest.
    models.Index(
        fields=["fingerprint", "status", "finished_at"],
        condition=Q(fingerprint__isnull=False),
        include=["waiting_for", "key"],
        name="engine_instance_fingerprint",
    ),
]
