"""Write server-sent events."""

from __future__ import annotations

from collections.abc import Sequence

from engine.status.changes import End, Page
from engine.status.documents import Document, as_json

RETRY_MS = 1_000
HEARTBEAT = b": still here\n\n"
OPENING = b"retry: %d\n\n" % RETRY_MS
CHUNK = 32 * 1024  # bytes that are sent before the connection is asked again


def event(kind: str, document: Document, cursor: str | None = None) -> bytes:
    """Return an event. JSON has no line breaks, which would end the data."""
    head = f"id: {cursor}\n" if cursor is not None else ""
    return f"{head}event: {kind}\ndata: {as_json(document, indent=None)}\n\n".encode()


def events_of(page: Page) -> Sequence[bytes]:
    """Return the events of a page, in chunks."""
    chunks: list[bytes] = []
    waiting: list[bytes] = []
    size = 0
    for change in page.changes:
        waiting.append(event(change.kind, change.document, change.cursor.text()))
        size += len(waiting[-1])
        if size >= CHUNK:
            chunks.append(b"".join(waiting))
            waiting, size = [], 0
    if page.end is not None:
        waiting.append(event("end", _end(page.end), page.after.text()))
    return [*chunks, b"".join(waiting)] if waiting else chunks


def _end(end: End) -> Document:
    return {"status": end.status, "generation": end.generation, "is_deleted": end.status is None}
