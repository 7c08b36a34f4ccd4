"""What a browser loads for the first page of a visit."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from tests.studio import factories
from tests.studio.routes import address, rules

pytestmark = pytest.mark.django_db

MOST_BYTES = (
    60_000  # compressed; without fonts, and without the editor and the API's documentation, which load later
)
LOADED = re.compile(r'<(?:script|link)\b[^>]*?\b(?:src|href)="/static/([^"]+)\.[0-9a-f]{12}(\.(?:js|css))"')
JOINED = re.compile(r'<(?:script|link)\b[^>]*?\b(?:src|href)="(/_f/joined/[^"]+)"')
LATER = "studio/vendor/swagger"


def test_no_page_is_heavier(signed_in: Callable[..., Client]) -> None:
    instance = factories.instance(workflow="process-order", id="order-1")
    factories.job(instance)
    admin = signed_in("admin")
    weights = {}
    for name, rule in rules().items():
        if "GET" not in rule.methods:
            continue
        answer = admin.get(address(name, instance))
        if answer.streaming or not answer.headers.get("Content-Type", "").startswith("text/html"):
            continue
        weights[name] = weight_of(answer.content)
    assert len(weights) > 20
    assert {name: weight for name, weight in weights.items() if weight > MOST_BYTES} == {}


def weight_of(page: bytes) -> int:
    """Return how many bytes a browser loads for a page, compressed."""
    files = {"".join(parts) for parts in LOADED.findall(page.decode())}
    assert "studio/vendor/codemirror.js" not in files
    read = [_read(one) for one in files if LATER not in one]
    read += [Client().get(where).content for where in JOINED.findall(page.decode())]
    return _weight(page) + sum(_weight(one) for one in read)


def _weight(content: bytes) -> int:
    return len(gzip.compress(content, 6))


def _read(file: str) -> bytes:
    path = finders.find(file)
    assert isinstance(path, str), file
    return Path(path).read_bytes()
