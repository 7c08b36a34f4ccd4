"""Where the workflows of a page run: in the test's own thread and transaction, with a clock that stands still."""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import ExitStack
from typing import Any, TypeVar

from django.db import connection
from django.db.models import Model

from engine import workflows
from engine.models import Instance, Step
from engine.testing import workflow_test
from studio.access import tokens
from studio.access.token_rules import GIVABLE
from tests.docs.served import serving
from tests.studio import factories

T = TypeVar("T")


class Stage:
    """Runs instances for the hidden code of a page, in which it is called `stage`."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self.test = self._open.enter_context(workflow_test())

    def close(self) -> None:
        self._open.close()

    def deploy(self) -> None:
        """Start other code: what the page declares from here on may reuse names that it declared before."""
        workflows._workflows.clear()

    def table(self, model: type[Model]) -> None:
        """Create the table of a model of `shop`, which is not an installed app."""
        with connection.schema_editor() as editor:
            editor.create_model(model)

    def finish(self, instance: Instance, **events: Any) -> Instance:
        """Run an instance to its end; what it waits for is these events, and time."""
        for name, payload in events.items():
            instance.send_event(name.replace("_", "-"), payload)
        return self.test.run_to_end(instance)

    def park(self, instance: Instance, name: str) -> Instance:
        """Run it until its step of that name waits for an answer."""
        self.test.run(instance)
        assert Step.objects.filter(instance=instance, name=name, status="waiting").exists(), instance.status
        return instance.refresh()

    def until(self, instance: Instance, status: str) -> Instance:
        """Run it as far as it goes, which is this status."""
        assert self.test.run(instance).status == status, instance.status
        return instance

    def serve(self, address: str) -> str:
        """Let clients reach the API at this address, in this thread and transaction. Return a token for it."""
        self._loop = self._open.enter_context(serving(address))
        admin = factories.person("admin")
        issued = tokens.issue("docs", by=admin, owner=None, verbs=GIVABLE, workflows=("*",))
        return issued.text

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine that asks the API."""
        return self._loop.run(coroutine)

    def pass_time(self, duration: str) -> None:
        self.test.time.travel(duration)
