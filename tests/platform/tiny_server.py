"""A daphne with limits so small that a test need not wait for them: `python -m tests.platform.tiny_server PORT`."""

import asyncio
import sys
from typing import Any

from daphne.cli import CommandLineInterface

from studio.intake import Limits, limit_daphne


async def may_be_large(scope: dict[str, Any]) -> bool:
    await asyncio.sleep(0.1)
    return bool(scope["path"] == "/large")


LIMITS = Limits(max_body_bytes=200_000, timeout_seconds=1, may_be_large=may_be_large, max_waiting=20)


async def application(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


if __name__ == "__main__":
    limit_daphne(LIMITS)
    CommandLineInterface().run(["-v", "0", "-p", sys.argv[1], "tests.platform.tiny_server:application"])
