"""A Studio whose process dies when it would answer a POST: what that did is committed, and nobody hears of it."""

import os
import signal
from typing import Any

from studio.asgi import application as studio


async def application(scope: Any, receive: Any, send: Any) -> None:
    async def die_or_send(message: Any) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            os.kill(os.getpid(), signal.SIGKILL)
        await send(message)

    await studio(scope, receive, die_or_send)
