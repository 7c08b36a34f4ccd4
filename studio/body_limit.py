"""Limit the size of bodies under any ASGI server; under daphne, `studio.intake` does it earlier."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from studio.plain_answers import Application, Message, Receive, Refusal, Scope, Send, refuse

SMALL = 64 * 1024

ENCODED = Refusal(415, "Send the body without any content encoding.")


class _TooLarge(Exception):
    def __init__(self, limit: int) -> None:
        self.limit = limit


class BodyLimit:
    """Answer 413 to a body that announces or has more than `max_bytes`, and 415 to an encoded one.

    `may_be_large` decides whether a request may have more than 64 KiB.
    """

    def __init__(
        self,
        application: Application,
        max_bytes: int,
        may_be_large: Callable[[Scope], Awaitable[bool]] | None = None,
    ) -> None:
        self.application = application
        self.max_bytes = max_bytes
        self.may_be_large = may_be_large

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if b"content-encoding" in headers:
            await refuse(scope, receive, send, ENCODED)
            return
        body = _Body(receive, self, scope)
        said = headers.get(b"content-length", b"")
        has_answered = False

        async def noting_send(message: Message) -> None:
            nonlocal has_answered
            has_answered = True
            await send(message)

        try:
            await body.grow(int(said[:20]) if said.isdigit() else 0)
            await self.application(scope, body.receive, noting_send)
        except _TooLarge as error:
            if not has_answered:
                await refuse(scope, receive, send, _too_large(error.limit))


class _Body:
    """The body of one request while it is received."""

    def __init__(self, receive: Receive, limit: BodyLimit, scope: Scope) -> None:
        self._receive, self._limit, self._scope = receive, limit, scope
        self._received = 0
        self._is_small = limit.may_be_large is not None

    async def receive(self) -> Message:
        message = await self._receive()
        self._received += len(message.get("body", b""))
        await self.grow(self._received)
        return message

    async def grow(self, size: int) -> None:
        """Raise _TooLarge if this size is not allowed."""
        if size > self._limit.max_bytes:
            raise _TooLarge(self._limit.max_bytes)
        if size > SMALL and self._is_small and self._limit.may_be_large is not None:
            self._is_small = not await self._limit.may_be_large(self._scope)
            if self._is_small:
                raise _TooLarge(SMALL)


def _too_large(limit: int) -> Refusal:
    return Refusal(413, f"The body may have {limit} bytes at most.")
