"""Ask again and again whether the reader of a stream still may read it; all streams of a token share the answer."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from django.http import HttpRequest

from studio.access.people import in_thread
from studio.access.permissions import Verb, allowed
from studio.api.auth import holder_of, refusal
from studio.api.problems import ProblemError
from studio.api.stream.feed import has_failed

CHECK_EVERY_S = 3.0
SHARED_FOR_S = 1.0
_asked: dict[object, tuple[float, asyncio.Future[Any]]] = {}


class Watch:
    """The permission of one stream to read a workflow."""

    def __init__(self, request: HttpRequest, holder: str, workflow: str, *, is_token: bool) -> None:
        self._request, self._workflow = request, workflow
        # What the project's own authentication looks at is not known: its streams do not share an answer.
        self._key: object = (holder, workflow) if is_token else object()
        self._checked_at = time.monotonic()

    async def check(self, *, is_news: bool) -> ProblemError | None:
        """Return why the reader may not read on. It asks at most once a second."""
        now = time.monotonic()
        if now - self._checked_at < (SHARED_FOR_S if is_news else CHECK_EVERY_S):
            return None
        self._checked_at = now
        asked_at, asked = _asked.get(self._key, (float("-inf"), None))
        is_old = now - asked_at >= SHARED_FOR_S
        if asked is None or is_old or not _is_of_this_loop(asked) or has_failed(asked):
            for old in [key for key, (at, _) in _asked.items() if now - at >= SHARED_FOR_S]:
                del _asked[old]
            asked = asyncio.ensure_future(in_thread(self._ask))
            _asked[self._key] = now, asked
        # A stream that ends must not cancel the question of the others.
        found: ProblemError | None = await asyncio.shield(asked)
        return found

    def _ask(self) -> ProblemError | None:
        try:
            holder = holder_of(self._request)
        except ProblemError as error:
            return error
        is_allowed = allowed(holder, Verb.VIEW, self._workflow)
        return None if is_allowed else refusal(holder, Verb.VIEW, self._workflow)


def _is_of_this_loop(asked: asyncio.Future[Any]) -> bool:
    return asked.get_loop() is asyncio.get_running_loop()
