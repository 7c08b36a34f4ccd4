"""Pages and fragments are compressed for clients that accept it, and nothing else is."""

from __future__ import annotations

import gzip

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.test import Client, RequestFactory

from studio.frame.compression import LARGEST, SMALLEST, compress
from tests.studio import factories

pytestmark = pytest.mark.django_db

GZIP = {"Accept-Encoding": "br, gzip"}
PAGES = ["/", "/instances/", "/_f/live/?topic=home", "/workflows/orders/instances/order-1/"]


@pytest.fixture(autouse=True)
def _instance(operator: Client) -> None:
    factories.instance(id="order-1")


@pytest.mark.parametrize("where", PAGES)
def test_a_page_is_compressed_for_who_accepts_it(operator: Client, where: str) -> None:
    answer = operator.get(where, headers=GZIP)
    assert answer.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in answer.headers["Vary"]
    assert int(answer.headers["Content-Length"]) == len(answer.content)
    plain = operator.get(where)
    assert "Content-Encoding" not in plain.headers
    assert "Accept-Encoding" in plain.headers["Vary"]
    body = gzip.decompress(answer.content)
    assert len(answer.content) < len(body) / 2
    assert b"hx-partial" in body or b"</html>" in body


def test_its_length_tells_nothing_about_the_secrets_on_it(operator: Client) -> None:
    lengths = {len(operator.get("/instances/", headers=GZIP).content) for _ in range(20)}
    assert len(lengths) > 5


def test_a_site_that_compresses_does_not_do_it_twice(operator: Client, settings) -> None:  # type: ignore[no-untyped-def]
    settings.MIDDLEWARE = ["django.middleware.gzip.GZipMiddleware", *settings.MIDDLEWARE]
    answer = operator.get("/instances/", headers=GZIP)
    assert answer.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(answer.content).lstrip().startswith(b"<!doctype html>")


@pytest.mark.parametrize(
    "answer",
    [
        HttpResponse("x" * (SMALLEST - 1)),
        HttpResponse("x" * (LARGEST + 1)),
        HttpResponse("x" * 5_000, content_type="image/svg+xml"),
        HttpResponse("x" * 5_000, headers={"Content-Encoding": "identity"}),
        HttpResponse("x" * 5_000, headers={"ETag": '"1"'}),
        StreamingHttpResponse(iter([b"x" * 5_000])),
    ],
    ids=["small", "large", "another type", "encoded already", "with an ETag", "stream"],
)
def test_other_answers_stay_as_they_are(answer: HttpResponse) -> None:
    before = dict(answer.headers)
    compress(RequestFactory().get("/", headers=GZIP), answer)
    assert dict(answer.headers) == before
