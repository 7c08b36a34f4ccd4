"""A daphne with limits so small that a test need not wait: `python -m tests.platform.tiny_server PORT SECONDS`."""

import asyncio
import sys
from typing import Any

from daphne.cli import CommandLineInterface

from studio.intake import Limits, limit_daphne


async def may_be_large(scope: dict[str, Any]) -> bool:
    await asyncio.sleep(0.1)
    return bool(scope["path"] == "/large")


def is_known(scope: dict[str, Any]) -> bool:
    return (b"cookie", b"known") in scope["headers"]


async def application(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


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
    CommandLineInterface().run(["-v", "0", "-p", sys.argv[1], "tests.platform.tiny_server:application"])
