"""Durable calls without `await`: their use is an error that says so, and unused ones are listed at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from engine.values.errors import NotAwaitedError

if TYPE_CHECKING:
    from engine.replay.records.history import StepRecord

CALLS = {
    "do": "step.do",
    "sleep": "step.sleep",
    "event": "step.wait_for_event",
    "request": "step.request",
    "child": "step.run_workflow",
    "parallel": "step.parallel",
    "map": "step.map",
    "progress": "step.progress",
}
NAMED = 3  # at most, of many


class Unawaited:
    """Refuses uses that an asyncio future accepts, or answers with a TypeError that does not name the mistake."""

    record: StepRecord
    is_awaited = False  # by the handler, or through a task, `gather` or `wait`

    if not TYPE_CHECKING:  # they have the types of a future's

        def __await__(self) -> Generator[Any, None, Any]:
            self.is_awaited = True
            return super().__await__()

        def add_done_callback(self, *args: Any, **kwargs: Any) -> None:
            self.is_awaited = True
            super().add_done_callback(*args, **kwargs)

    if not TYPE_CHECKING:  # or any attribute would be there

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):  # asked for by asyncio, inspect, copy, …
                raise AttributeError(name)
            raise self._not_awaited(f'its attribute "{name}" was read')

    def __eq__(self, other: object) -> bool:
        is_future = isinstance(other, asyncio.Future)  # as in `operation in operations`
        if not is_future:
            raise self._not_awaited("it was compared")
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = object.__hash__

    def _not_awaited(self, use: str) -> NotAwaitedError:
        call = CALLS.get(self.record.kind, "step.do")
        return NotAwaitedError(self.record.name, use, call)


def check_awaited(use: str, *values: object) -> None:
    """Raise NotAwaitedError if one of these values, which are passed on, is a durable call."""
    for value in values:
        if isinstance(value, Unawaited):
            raise value._not_awaited(use)


def never_awaited(calls: Iterable[Unawaited]) -> str:
    """Return a message that names the calls a handler never awaited; empty if there are none."""
    said = [_shown(call) for call in calls if not call.is_awaited]
    if not said:
        return ""
    named = ", ".join(said[:NAMED]) + (f" and {len(said) - NAMED} more" if len(said) > NAMED else "")
    were, it = ("were", "them") if len(said) > 1 else ("was", "it")
    return (
        f"{named} {were} called and never awaited. The workflow did not wait for {it}, and its end cancelled "
        f"what was not done. Write `await` before the call."
    )


def _shown(call: Unawaited) -> str:
    return f'{CALLS.get(call.record.kind, "step.do")}("{call.record.name}")'


def _refuse(use: str) -> Callable[..., NoReturn]:
    def refuse(self: Unawaited, *args: object) -> NoReturn:
        raise self._not_awaited(use)

    return refuse


_USES = {
    "it was used as a condition": "bool",
    "it was compared": "lt le gt ge",
    "it was used in a calculation": """
        add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod divmod rdivmod pow rpow matmul rmatmul
        and rand or ror xor rxor lshift rlshift rshift rrshift neg pos abs invert int float complex index round
    """,
    "it was iterated over": "iter aiter reversed len contains",
    "an item of it was taken": "getitem setitem delitem",
    "it was put into a text": "format str",
    "it was called": "call",
    "it was entered as a context": "enter aenter exit aexit",  # both, or Python says itself that one is missing
}
for _use, _names in _USES.items():
    for _name in _names.split():
        setattr(Unawaited, f"__{_name}__", _refuse(_use))
