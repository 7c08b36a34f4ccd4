"""A daphne with limits so small that a test need not wait: `python -m tests.platform.tiny_server PORT SECONDS`."""

import asyncio
import sys
from typing import Any

from daphne.cli import CommandLineInterface

from studio.access.anonymous_queue import QueueFullError
from studio.api.stream.flow import HEADER, Flow
from studio.server.request_limits import Limits, limit_daphne

HTTP_TIMEOUT_S = 1
STREAM_TAKES_S = 5  # daphne looks every two seconds
FLOOD = 64 * 1024


async def may_be_large(scope: dict[str, Any]) -> bool:
    await asyncio.sleep(60 if scope["path"] == "/queue" else 0.1)
    if scope["path"] == "/full":
        raise QueueFullError
    if scope["path"] == "/broken":
        raise RuntimeError
    return bool(scope["path"].removeprefix(scope["root_path"]) == "/large")


def is_known(scope: dict[str, Any]) -> bool:
    return (b"cookie", b"known") in scope["headers"]


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] in ("/stream", "/answer", "/flood"):
        await stream(scope, send)
        return
    names = [task.get_coro().__qualname__ for task in asyncio.all_tasks()]
    body = b"%d" % names.count(may_be_large.__name__) if scope["path"] == "/asking" else b"ok"
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": body})


async def stream(scope: Any, send: Any) -> None:
    """Answer slowly, as a stream or not; or send for as long as the connection takes more, and then cut it."""
    flow = Flow()
    headers = [] if scope["path"] == "/answer" else [(HEADER, flow.number)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    sent = 0
    if scope["path"] == "/flood":
        while await flow.takes_more(1):
            await send({"type": "http.response.body", "body": b"x" * FLOOD, "more_body": True})
            sent += FLOOD
        print(sent, flush=True)
        flow.abort()
        return
    await send({"type": "http.response.body", "body": b"begin ", "more_body": True})
    await asyncio.sleep(STREAM_TAKES_S)
    await send({"type": "http.response.body", "body": b"end"})


if __name__ == "__main__":
    limit_daphne(
        Limits(
            max_body_bytes=200_000,
            timeout_seconds=float(sys.argv[2]),
            may_be_large=may_be_large,
            is_known=is_known,
            max_waiting=20,
        )
    )
    arguments = ["-v", "0", "--http-timeout", str(HTTP_TIMEOUT_S), "-p", sys.argv[1]]
    CommandLineInterface().run([*arguments, "tests.platform.tiny_server:application"])
