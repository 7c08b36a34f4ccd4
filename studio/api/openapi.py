"""Serve the document of the API: the file openapi.json, which `python -m tests.studio.api` writes."""

from __future__ import annotations

import hashlib
import json
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from django.http import HttpRequest, HttpResponse

from studio.api.answers import CONTENT_TYPE

FILE = Path(__file__).with_name("openapi.json")
NAME = "openapi.json"
ADDRESSES = 8  # below which a process serves it


def document(request: HttpRequest) -> HttpResponse:
    """Return the document, with the address of this API. It says nothing else of this installation."""
    text, tag = _at(request.path.removesuffix(f"/{NAME}"))
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if tag in (one.strip() for one in request.headers.get("If-None-Match", "").split(",")):
        return HttpResponse(status=304, headers=headers)
    return HttpResponse(text, CONTENT_TYPE, headers=headers)


@lru_cache(maxsize=ADDRESSES)
def _at(address: str) -> tuple[str, str]:
    text = json.dumps({**_read(), "servers": [{"url": address}]}, ensure_ascii=False, separators=(",", ":"))
    return text, f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


@cache
def _read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found
