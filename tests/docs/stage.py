"""Where the workflows of a page run: a shift that knows what the page has declared by then, and time that passes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from django.db import connection
from django.db.models import Model

from engine import workflows
from engine.models import Instance, Step
from tests.shifts import running_shift, wait_until
from tests.travel import skip_wait

PATIENCE = 60  # seconds; it takes far less


class Stage:
    """Runs instances for the hidden code of a page, in which it is called `stage`."""

    def __init__(self) -> None:
        self._shift = ExitStack()
        self._known: set[str] = set()
        self._tables: list[type[Model]] = []

    def close(self) -> None:
        self._stop()
        for model in self._tables:
            with connection.schema_editor() as editor:
                editor.delete_model(model)

    def _stop(self) -> None:
        self._shift.close()
        self._known = set()

    def deploy(self) -> None:
        """Let other code come: what the page declares from here on may have the names of what it declared before."""
        self._stop()
        workflows._workflows.clear()

    def table(self, model: type[Model]) -> None:
        """Have the table of a model of `shop`, which is no installed app, until the page is done."""
        with connection.schema_editor() as editor:
            editor.create_model(model)
        self._tables.append(model)

    def finish(self, instance: Instance, **events: Any) -> Instance:
        """Run an instance to its end. It gets these events when it waits for something else than time."""
        self._play()
        for name, payload in events.items():
            instance.send_event(name.replace("_", "-"), payload)
        self._wait(instance, lambda: instance.is_finished)
        return instance

    def park(self, instance: Instance, name: str) -> Instance:
        """Run it until its step of that name waits."""
        self._play()
        rows = Step.objects.filter(instance=instance, name=name, status="waiting")
        self._wait(instance, rows.exists, but=name)
        return self._until(instance, lambda: instance.refresh().status == "waiting")

    def until(self, instance: Instance, status: str) -> Instance:
        """Run it until it has this status."""
        self._play()
        return self._until(instance, lambda: instance.refresh().status == status)

    def _until(self, instance: Instance, condition: Callable[[], bool]) -> Instance:
        wait_until(condition, seconds=PATIENCE, what=f"what is awaited of {instance}, {instance.status}")
        return instance

    def _wait(self, instance: Instance, condition: Callable[[], bool], *, but: str = "") -> None:
        """Wait for something, and let time pass wherever the instance waits for nothing else on its way there."""

        def has_come() -> bool:
            instance.refresh()
            if condition():
                return True
            waits = Step.objects.filter(instance=instance, status="waiting").exclude(name=but)
            if instance.status == "waiting" and instance.waiting_for in ("sleep", "retry") and waits.exists():
                skip_wait(instance)
            return False

        wait_until(has_come, seconds=PATIENCE, what=f"what is awaited of {instance}")

    def _play(self) -> None:
        """Have a shift that knows every workflow there is."""
        if not set(workflows) <= self._known:
            self._stop()
            self._known = set(workflows)
            self._shift.enter_context(running_shift())
