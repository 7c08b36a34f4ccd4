"""Two dozen strangers who ask as fast as they are answered, until killed: `python -m tests.platform.crowd PORT NAME`"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable

from tests.platform import visitor
from tests.platform.visitor import FORM, Port, handshake, head, post

STRANGERS = 24
CSRF = b"Cookie: reprise-csrf=" + b"a" * 32
FORGED = b"Cookie: reprise-session=" + b"x" * 32
GUESS = f"csrfmiddlewaretoken={'a' * 32}&username=anybody&password=wrong".encode()
FIELDS = b"&".join(b"a%d=" % n for n in range(600_000))
AMPERSANDS = b"&" * (4 * 1024 * 1024)
PARTS = b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n" * 70_000
WRONG = b"Authorization: Bearer rpr_aaaaaaaa_" + b"b" * 43
MEBIBYTE = b"{" + b" " * 1_048_576
JSON = "application/json"
MULTIPART = "multipart/form-data; boundary=x"

UNSIGNED = (
    b"webhook-id: stranger",
    b"webhook-timestamp: %d" % time.time(),
    b"webhook-signature: v1," + b"A" * 43 + b"=",
)
HOOK = "STUDIO_TEST_HOOK"


def hook() -> str:
    """Return the path of the webhook that a test has made."""
    return os.environ.get(HOOK, "/hooks/nothing")


REQUESTS: dict[str, Callable[[Port], bytes]] = {
    "passwords": lambda port: post(port, "/sign-in/", GUESS, FORM, CSRF),
    "pages": lambda port: head(port, "GET /sign-in/ HTTP/1.1"),
    "sessions": lambda port: head(port, "GET / HTTP/1.1", FORGED),
    "sockets": handshake,
    "600,000 fields": lambda port: post(port, "/sign-in/", FIELDS, FORM, CSRF, FORGED),
    "4 MiB of &": lambda port: post(port, "/sign-in/", AMPERSANDS, FORM, CSRF),
    "70,000 parts": lambda port: post(port, "/sign-in/", PARTS, MULTIPART, CSRF),
    "API": lambda port: head(port, "GET /api/v1/instances HTTP/1.1"),
    "wrong tokens": lambda port: head(port, "GET /api/v1/instances HTTP/1.1", WRONG),
    "1 MiB with wrong tokens": lambda port: post(port, "/api/v1/events", MEBIBYTE, JSON, WRONG),
    "wrong signatures": lambda port: post(port, hook(), b"{}", JSON, *UNSIGNED),
    "1 MiB with wrong signatures": lambda port: post(port, hook(), MEBIBYTE[:1_048_576], JSON, *UNSIGNED),
    "1,000 parts": lambda port: post(port, "/sign-in/", PARTS[: 47 * 1_000], MULTIPART, CSRF),
}


async def press(port: int, request: bytes, answered: asyncio.Event) -> None:
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(request)
            await reader.readuntil(b"\r\n\r\n")
            answered.set()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def main(port: int, name: str) -> None:
    answered = asyncio.Event()
    request = REQUESTS[name](visitor.At(port))
    crowd = [asyncio.create_task(press(port, request, answered)) for _ in range(STRANGERS)]
    await answered.wait()
    print("answered", flush=True)
    await asyncio.gather(*crowd)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
