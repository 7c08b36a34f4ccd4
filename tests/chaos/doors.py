"""How a client gets at the engine: by its Python calls, or by the Studio's forms.

A call that was not accepted, or of which nobody knows, raises NotAcceptedError. The client then makes the very same
call again: each is such that a repetition changes nothing.
"""

from __future__ import annotations

import dataclasses
import json
import time
import uuid
from contextlib import suppress
from typing import Protocol

from django.db import Error, connection, transaction

from engine.models import Instance
from engine.values.errors import InstanceFinishedError, InstanceNotFoundError, StepNotFoundError
from tests.chaos.browser import Browser
from tests.chaos.stories import EVENT, Deed, Story
from tests.chaos.workflows import kitchen_sink

HOLD_SECONDS = 2.0
BY = "client"


class NotAcceptedError(Exception):
    """The database or the web server is away, or went away meanwhile."""


class EndedError(Exception):
    """The instance has ended, so nothing can be sent to it any more."""


class Door(Protocol):
    """`do` returns what the deed led to, as far as the client is told."""

    def start(self, story: Story) -> str: ...
    def do(self, story: Story, deed: Deed) -> str: ...


class EngineDoor:
    """The engine's public calls."""

    def __init__(self) -> None:
        self._known: dict[str, Instance] = {}

    def start(self, story: Story) -> str:
        try:
            instance, created = kitchen_sink.get_or_start(story.id, story.ops, tags=[story.kind], by=BY)
        except Error as error:
            raise self._away(error) from None
        self._known[story.id] = instance
        return "created" if created else "known"

    def do(self, story: Story, deed: Deed) -> str:
        try:
            return str(getattr(self, f"_{deed.verb}")(self._known[story.id], deed))
        except Error as error:
            raise self._away(error) from None
        except InstanceFinishedError as error:
            raise EndedError(error.status) from None

    def _send(self, instance: Instance, deed: Deed) -> str:
        if not deed.is_held:
            return str(instance.send_event(EVENT, deed.payload, deed.key).key)
        with transaction.atomic():
            event = instance.send_event(EVENT, deed.payload, deed.key)
            time.sleep(HOLD_SECONDS)
        return str(event.key)

    def _pause(self, instance: Instance, deed: Deed) -> str:
        return str(instance.pause(by=BY).status)

    def _resume(self, instance: Instance, deed: Deed) -> str:
        return str(instance.resume(by=BY).status)

    def _terminate(self, instance: Instance, deed: Deed) -> str:
        try:
            return str(instance.terminate(by=BY).status)
        except InstanceFinishedError as error:
            return error.status

    def _restart(self, instance: Instance, deed: Deed) -> str:
        """Once: nobody else does, so that another generation is the answer to a call which nobody heard."""
        if instance.refresh().generation > 1 + (deed.payload or 0):
            return "done"
        try:
            return str(instance.restart(deed.key or None, by=BY).status)
        except StepNotFoundError:  # it is not that far
            return str(instance.restart(by=BY).status)

    def _delete(self, instance: Instance, deed: Deed) -> str:
        with suppress(InstanceNotFoundError):
            instance.delete(by=BY)
        return "done"

    @staticmethod
    def _away(error: Error) -> NotAcceptedError:
        connection.close()
        return NotAcceptedError(str(error))


class StudioDoor:
    """The Studio's forms, over HTTP with a session."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self._tokens: dict[tuple[str, str], str] = {}

    def start(self, story: Story) -> str:
        params = json.dumps([dataclasses.asdict(op) for op in story.ops])
        token = self._token(story.id, "start")
        where = f"/workflows/{kitchen_sink.name}/start/"
        self._post(where, params=params, id=story.id, tags=story.kind, token=token)
        return "created"

    def do(self, story: Story, deed: Deed) -> str:
        where = f"/workflows/{kitchen_sink.name}/instances/{story.id}/"
        if deed.verb == "send":
            token = self._token(story.id, deed.key)
            payload = json.dumps(deed.payload)
            if self._post(f"{where}events/", refusal=409, type=EVENT, payload=payload, token=token) == 409:
                raise EndedError
            return token
        # 409: it is so already, or has ended.
        status = self._post(f"{where}{deed.verb}/", reason="as planned", refusal=409)
        return "done" if status == 302 else "refused"

    def _post(self, path: str, *, refusal: int = 302, **fields: str) -> int:
        status = self.browser.post(path, **fields).status
        if status not in (302, refusal):
            raise NotAcceptedError(f"{path} answered {status}")
        return status

    def _token(self, instance: str, what: str) -> str:
        """Return the token of a form, the same whenever it is sent again."""
        return self._tokens.setdefault((instance, what), _uuid7())


def _uuid7() -> str:
    """Make the token of a form that was drawn now."""
    number = (int(time.time() * 1000) << 80) | (uuid.uuid4().int & ((1 << 80) - 1))
    number = (number & ~(0xF << 76)) | (0x7 << 76)
    return str(uuid.UUID(int=(number & ~(0x3 << 62)) | (0x2 << 62)))
