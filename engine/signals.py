"""Django signals for failures. A worker sends them after the commit, at least once.

    @receiver(instance_errored, sender=ship_order)
    def tell_the_team(instance_id, error_type, error_message, **kwargs): ...

`sender` is the workflow, as in `sender=ship_order`. Every receiver gets `notice_id`, the same number when the same
failure is sent again, `at`, and the arguments listed at its signal. `instance`, if there is one, is read from the
database on first use, and raises Instance.DoesNotExist if it has been deleted since. The logger
`reprise.instances` gets the same. See docs/signals.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import MethodType
from typing import Any

from asgiref.sync import async_to_sync
from django.core.exceptions import ObjectDoesNotExist
from django.dispatch import Signal


@dataclass(frozen=True, slots=True)
class Receiver:
    """One of a signal's receivers, with the call that notifies it."""

    key: Hashable  # the same each time it is called
    name: str
    call: Callable[[], object]


class NoticeSignal(Signal):
    """A signal whose receivers are called one by one, so that no receiver can block another."""

    def told(self, sender: object, **arguments: Any) -> list[Receiver]:
        """Return the receivers for this sender, each to be called with these arguments."""
        plain, asynchronous = self._live_receivers(sender)
        calls = [(one, one) for one in plain] + [(one, partial(_await, one)) for one in asynchronous]
        return [
            Receiver(_key(one), _name(one), partial(call, signal=self, sender=sender, **arguments))
            for one, call in calls
        ]


def _await(receiver: Callable[..., Awaitable[object]], **arguments: Any) -> object:
    with suppress(ObjectDoesNotExist):
        getattr(arguments.get("instance"), "pk", None)  # read it here: async code may not
    return async_to_sync(receiver)(**arguments)


def _key(receiver: object) -> Hashable:
    if isinstance(receiver, MethodType):  # a new object each time it is looked up
        return id(receiver.__self__), id(receiver.__func__)
    return id(receiver)


def _name(receiver: object) -> str:
    named = getattr(receiver, "__qualname__", type(receiver).__qualname__)
    return f"{getattr(receiver, '__module__', '')}.{named}"


instance_errored = NoticeSignal()
"""An instance ended as errored, and its rollbacks are over. Arguments: `workflow`, `instance_id`, `generation`, `step`
(the failed one, or empty), `error_type`, `error_message`, `instance`."""

rollback_failed = NoticeSignal()
"""A rollback failed for good, or was interrupted: something is half undone. Arguments: `workflow`, `instance_id`,
`generation`, `step`, `count` (which step of that name), `error_type`, `error_message`, `instance`."""

instance_paused = NoticeSignal()
"""The engine paused an instance because code and record do not match; not sent when a person pauses it. Arguments:
`workflow`, `instance_id`, `generation`, `error_type`, `error_message`, `instance`."""

attempt_lost = NoticeSignal()
"""A worker died while it ran an attempt of a step; the step runs again. Arguments: `workflow`, `instance_id`,
`generation`, `step`, `count`, `attempt`, `phase` (`do` or `rollback`), `worker`, `instance`."""

worker_retired = NoticeSignal()
"""A worker process was stopped because it could not continue, for example because all its threads hang. Arguments:
`worker`, `reason`."""

SIGNALS: dict[str, NoticeSignal] = {
    "instance_errored": instance_errored,
    "rollback_failed": rollback_failed,
    "instance_paused": instance_paused,
    "attempt_lost": attempt_lost,
    "worker_retired": worker_retired,
}
