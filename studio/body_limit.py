"""The largest body that the application takes, under any ASGI server; daphne's own intake is in `studio.intake`."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[..., Awaitable[None]]


class _TooLarge(Exception):
    pass


class BodyLimit:
    """Answer 413 to a body over `max_bytes`, by what it says or by what comes; 415 to an encoded one."""

    def __init__(self, application: Application, max_bytes: int) -> None:
        self.application = application
        self.max_bytes = max_bytes

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if b"content-encoding" in headers:
            await _answer(send, 415, b"Send the body without any content encoding.\n")
        elif self._says_too_much(headers.get(b"content-length", b"")):
            await self._refuse(send)
        else:
            await self._count(scope, receive, send)

    async def _count(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        received = 0
        has_answered = False

        async def counting_receive() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.max_bytes:
                raise _TooLarge
            return message

        async def noting_send(message: Message) -> None:
            nonlocal has_answered
            has_answered = True
            await send(message)

        try:
            await self.application(scope, counting_receive, noting_send)
        except _TooLarge:
            if not has_answered:
                await self._refuse(send)

    def _says_too_much(self, length: bytes) -> bool:
        return length.isdigit() and int(length[:20]) > self.max_bytes

    async def _refuse(self, send: Send) -> None:
        await _answer(send, 413, b"The body may have %d bytes at most.\n" % self.max_bytes)


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
        (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
        (b"x-frame-options", b"DENY"),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-store"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
