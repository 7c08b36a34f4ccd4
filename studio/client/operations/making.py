"""Make calls: addresses, pages of lists, and POSTs with a key."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from studio.client.call import Call, Pages, path_of, query_of

PAGE = 100  # rows of a list that are read at once


def address_of(workflow: str, id: str, *parts: str | int) -> str:
    return path_of("workflows", workflow, "instances", id, *parts)


def pages_of(path: str, key: str, **query: Any) -> Pages[Any]:
    return Pages(lambda cursor: Call("GET", path, query_of(**query, limit=PAGE, cursor=cursor)), key)


def post(
    path: str,
    body: Any,
    key: str | None,
    headers: Mapping[str, str] | None = None,
    part: str | None = None,
) -> Call[Any]:
    """Return a POST with an Idempotency-Key: retries send the same one, so that what it does is done once."""
    with_key = {**(headers or {}), "Idempotency-Key": key or str(uuid.uuid4())}
    return Call("POST", path, body=body, headers=with_key, part=part)
