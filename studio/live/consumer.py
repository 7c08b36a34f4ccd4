"""The socket of a tab: a snapshot when it opens, then the pieces that changed."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from html import escape
from typing import Any, TypeVar

from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import Error

from studio.access import anonymous_queue
from studio.access.cookies import session_key_of
from studio.access.people import in_thread, person_now
from studio.access.permissions import RefusedError, Verb, rights
from studio.access.routes import routes_of
from studio.frame import pieces
from studio.frame.hub import hub
from studio.frame.live_view import LiveView
from studio.live.counts import count_pieces
from studio.live.sharing import Shared, gallery
from studio.live.topics import UnknownViewError, view_of

log = logging.getLogger("studio.live")

T = TypeVar("T")

# All in the private range: daphne cannot send 1008, 1009 or 1011 and would leave the socket open and silent.
SIGNED_OUT = 4401  # htmx does not reconnect at this code
FINISHED = 4000
TOO_MANY = 4429
TOO_BIG = 4009
BROKEN = 4011  # live.js makes htmx reconnect after a while
NOT_ALLOWED = 4008

CHECK_EVERY_S = 3.0  # signed-out users see updates for a few seconds more at most
REDRAW_EVERY_S = 5.0  # bars of running steps grow even without changes
COUNTS_EVERY_S = 0.4  # more often than any view, so that none waits for them
LINGER_S = 2.0  # wait for the last changes of a finished instance
SAY_EVERY_S = 10.0
SOCKETS_A_PERSON = 50
LONGEST_FRAME = 1_024
FRAMES_A_MINUTE = 120
BEAT = "beat"  # a page sends it every two seconds, to check the connection
PAINTED = "painted"  # sent when a response changed the page, which may now differ from what was sent last

_open_sockets: Counter[object] = Counter()


class StudioConsumer(AsyncWebsocketConsumer):
    """Watches one live view for one user."""

    user: Any = None
    held: frozenset[Verb] = frozenset()
    topic: LiveView

    async def connect(self) -> None:
        self.sent: dict[str, int] = {}
        self.order: tuple[str, ...] = ()
        self.is_painted = True  # the page has just been loaded
        self.said, self.said_at = "", 0.0
        self.routes = routes_of(self.scope)
        self.frames: list[float] = []
        self.wake = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.counted_for: object = None
        # Accept first: an earlier close reaches the browser as 1006, and it would reconnect forever.
        await self.accept()
        is_signed_in = await self._sign_in()
        anonymous_queue.release_turn(self.scope)
        if not is_signed_in:
            await self.close(SIGNED_OUT)
            return
        anonymous_queue.remember(session_key_of(self.scope))
        try:
            self.topic = view_of(self.scope["query_string"].decode("ascii", "replace"))
        except UnknownViewError:
            await self.close(NOT_ALLOWED)
            return
        if _open_sockets[self.user.pk] >= SOCKETS_A_PERSON:
            await self.close(TOO_MANY)
            return
        self.counted_for = self.user.pk
        _open_sockets[self.counted_for] += 1
        hub().subscribe(self._changed)
        self.wake.set()
        self.task = asyncio.create_task(self._push_until_broken())

    async def disconnect(self, code: int) -> None:
        if self.counted_for is not None:
            _open_sockets[self.counted_for] -= 1
            self.counted_for = None
            await hub().unsubscribe(self._changed)
        if self.task is not None and self.task is not asyncio.current_task():
            self.task.cancel()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Answer a beat, or render everything again. Pages send nothing else, and not often."""
        if bytes_data is not None or len(text_data or "") > LONGEST_FRAME:
            await self.close(TOO_BIG)
            return
        now = time.monotonic()
        self.frames = [at for at in self.frames if now - at < 60] + [now]
        if len(self.frames) > FRAMES_A_MINUTE:
            await self.close(NOT_ALLOWED)
        elif text_data == BEAT and self.task is not None:
            await self.send(text_data=BEAT)
        elif text_data == PAINTED and self.task is not None:
            self.sent, self.order, self.is_painted = {}, (), True
            self.wake.set()

    def _changed(self, keys: frozenset[int] | None) -> None:
        if self.topic.concerns(keys):
            self.wake.set()

    async def _push_until_broken(self) -> None:
        try:
            await self._push()
        except RefusedError:
            await self.close(NOT_ALLOWED)
        except Exception as error:  # whatever broke, tell the page, which reconnects by itself
            log.warning(
                "A page lost its socket: %s", type(error).__name__, exc_info=not isinstance(error, Error)
            )
            await self.close(BROKEN)

    async def _push(self) -> None:
        """Render after each change, as often as the topic allows, until it is done."""
        while True:
            try:
                await asyncio.wait_for(self.wake.wait(), REDRAW_EVERY_S)
                is_news = True
            except TimeoutError:
                is_news = False
            self.wake.clear()
            if time.monotonic() - self.checked_at > CHECK_EVERY_S and not await self._sign_in():
                await self.close(SIGNED_OUT)
                return
            if not is_news and not self.topic.moves_by_itself:
                continue
            drawing = await self._draw(since=self._oldest(is_news=is_news))
            message = self._news(drawing)
            if message:
                await self.send(text_data=message)
            if drawing.is_done:
                if is_news and not self.wake.is_set():
                    await self._linger()
                if not self.wake.is_set():
                    await self.close(FINISHED)
                    return

    def _oldest(self, *, is_news: bool) -> float:
        """Return when a drawing must have been begun at the earliest, besides knowing all changes."""
        now = time.monotonic()
        if self.is_painted:  # the notification of what the response shows may not have arrived yet
            self.is_painted = False
            return now
        return -math.inf if is_news else now - REDRAW_EVERY_S / 2  # other tabs may have drawn it meanwhile

    async def _linger(self) -> None:
        try:
            await asyncio.wait_for(self.wake.wait(), LINGER_S)
        except TimeoutError:
            return

    async def _draw(self, *, since: float) -> pieces.Drawing:
        """Return a drawing that was begun then or later, and knows every change until now, with the user's counts."""
        drawing, counted = await asyncio.gather(
            self._drawn(since, hub().changes), self._counted(since, hub().changes)
        )
        return replace(drawing, pieces={**drawing.pieces, **counted.pieces})

    async def _drawn(self, since: float, knows: int) -> pieces.Drawing:
        """Share it with those who have equal rights, or if it is personal, among the user's own tabs."""
        common = gallery()[self.topic, self.routes, self.held]
        if not common.is_personal:
            drawing, drawn_for = await self._shared(common, since, knows)
            common.is_personal = drawing.is_personal
            if not drawing.is_personal or drawn_for == self.user.pk:
                return drawing
        own = gallery()[self.topic, self.routes, "person", self.user.pk]
        drawing, _ = await self._shared(own, since, knows)
        common.is_personal = drawing.is_personal
        return drawing

    async def _shared(self, shared: Shared, since: float, knows: int) -> tuple[pieces.Drawing, object]:
        async def draw() -> pieces.Drawing:
            return await in_thread(self._render, self.topic.draw)

        every = self.topic.seconds_between
        beat = gallery().beat(type(self.topic)) if self.topic.shares_reading else None
        return await shared.drawing(
            draw, by=self.user.pk, knows=knows, since=since, seconds_between=every, beat=beat
        )

    async def _counted(self, since: float, knows: int) -> pieces.Drawing:
        """Return the counts in the navigation, which all tabs of a user share."""

        async def draw() -> pieces.Drawing:
            return pieces.Drawing(await in_thread(self._render, count_pieces))

        counts = gallery()["counts", self.routes, self.user.pk]
        drawing, _ = await counts.drawing(
            draw, by=self.user.pk, knows=knows, since=since, seconds_between=COUNTS_EVERY_S
        )
        return drawing

    def _render(self, draw: Callable[[Any], T]) -> T:
        """Render for the user, with the addresses of the page that opened the socket."""
        with self.routes.used():
            return draw(self.user)

    def _news(self, drawing: pieces.Drawing) -> str:
        """Return what this tab has not seen. If the order of steps changed, send all steps."""
        prints = {name: hash(piece.print) for name, piece in drawing.pieces.items()}
        changed = {
            name: piece for name, piece in drawing.pieces.items() if self.sent.get(name) != prints[name]
        }
        parts: list[str] = []
        if drawing.order != self.order:
            steps = "".join(drawing.pieces[name].html for name in drawing.order)
            parts.append(pieces.partial("steps", pieces.Piece(steps, "innerMorph")))
            changed = {name: piece for name, piece in changed.items() if name not in set(drawing.order)}
        parts.append(pieces.frame(changed))
        self.sent, self.order = prints, drawing.order
        parts.append(self._say(drawing.say))
        return "".join(parts)

    def _say(self, text: str) -> str:
        """Return a message for screen readers, not too often."""
        now = time.monotonic()
        if not text or text == self.said or now - self.said_at < SAY_EVERY_S:
            return ""
        first, self.said, self.said_at = not self.said, text, now
        return "" if first else pieces.partial("say", pieces.Piece(escape(text), "textContent"))

    async def _sign_in(self) -> bool:
        self.user = await self._signed_in()
        self.held = await in_thread(rights, self.user) if self.user is not None else frozenset()
        self.checked_at = time.monotonic()
        return self.user is not None

    async def _signed_in(self) -> Any:
        key = session_key_of(self.scope)
        return await person_now(key) if key else None
