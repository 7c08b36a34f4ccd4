"""Let time pass for a parked instance, instead of waiting for it."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F, Q

from engine.models import Instance, Step
from engine.steer import notify
from engine.steer.clock import ClockTimestamp

OPEN = ["running", "waiting"]


def skip_wait(instance: Instance) -> None:
    """Make everything that a parked instance waits for due now."""
    waits = Q(status="waiting") | Q(rollback="running")
    Step.objects.filter(waits, instance=instance, wake_at__isnull=False).update(wake_at=ClockTimestamp())
    Instance.objects.filter(key=instance.key, status="waiting").update(wake_at=ClockTimestamp())
    notify.wake()


def age(instance: Instance, **duration: float) -> None:
    """Move everything that a parked instance has recorded, and its waits, into the past."""
    past = timedelta(**duration)
    rows = Step.objects.filter(instance=instance)
    rows.update(started_at=F("started_at") - past)
    rows.filter(wake_at__isnull=False).update(wake_at=F("wake_at") - past)
    # All at once: as soon as it is due, a worker reads the rest.
    Instance.objects.filter(key=instance.key).update(
        started_at=F("started_at") - past,
        starts_at=F("starts_at") - past,
        wake_at=F("wake_at") - past,
        deadline_at=F("deadline_at") - past,
    )
    notify.wake()
