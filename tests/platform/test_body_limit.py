"""The application's own limit, for servers that are not daphne."""

from typing import Any

import pytest

from studio.body_limit import BodyLimit, Receive, Send


async def _reads_all(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"read"})


async def _status(headers: list[tuple[bytes, bytes]], *chunks: bytes) -> int:
    coming = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    coming.append({"type": "http.request", "body": b"", "more_body": False})
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return coming.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await BodyLimit(_reads_all, max_bytes=10)({"type": "http", "headers": headers}, receive, send)
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    return int(sent[0]["status"])


@pytest.mark.parametrize(
    ("headers", "chunks", "status"),
    [
        ([], (), 200),
        ([(b"content-length", b"10")], (b"x" * 10,), 200),
        ([(b"content-length", b"11")], (), 413),
        ([(b"content-length", b"9" * 5000)], (), 413),
        ([], (b"x" * 6, b"x" * 5), 413),
        ([(b"content-length", b"1")], (b"x" * 11,), 413),
        ([(b"content-encoding", b"gzip")], (b"x",), 415),
    ],
)
async def test_a_body_over_the_limit_or_encoded_is_refused(
    headers: list[tuple[bytes, bytes]], chunks: tuple[bytes, ...], status: int
) -> None:
    assert await _status(headers, *chunks) == status
