"""No address and no body causes a 500, and an unreachable database is a 503."""

from __future__ import annotations

import pytest
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client

from tests.studio import factories

pytestmark = pytest.mark.django_db

IDS = [
    "%00",
    "a%00b",
    "%ff",
    "..%2f..%2fx",
    "a%2Fb",
    "a%E2%80%AEb",
    "x" * 101,
    "a%0A",
    "%20a",
    "%E2%92%B6",
    "%7B0%7D",
    "%3Cscript%3E",
    "%F0%9F%98%80",
]


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("method", ["get", "post"])
def test_what_cannot_be_an_id_is_not_found(operator: Client, method: str, id: str) -> None:
    for where in (f"/workflows/orders/instances/{id}/", f"/workflows/orders/instances/{id}/pause/"):
        answer = getattr(operator, method)(where)
        assert answer.status_code in (404, 405)
        assert b"<script>" not in answer.content


@pytest.mark.parametrize("name", [*IDS, "w" * 65])
def test_what_cannot_be_a_workflow_is_not_found(operator: Client, name: str) -> None:
    for where in (f"/workflows/{name}/", f"/workflows/{name}/start/"):
        assert operator.get(where).status_code == 404


def test_a_very_long_address_is_refused(operator: Client, client: Client) -> None:
    assert operator.get("/instances/" + "a" * 10_000).status_code == 414
    assert client.get("/" + "a" * 10_000).status_code == 414


def test_ids_are_told_apart_by_case(operator: Client) -> None:
    factories.instance(id="Order")
    assert operator.get("/workflows/orders/instances/Order/").status_code == 200
    assert operator.get("/workflows/orders/instances/order/").status_code == 404


BODIES = [
    (b"", "application/json"),
    (b"{", "application/json"),
    (b"\xff\xfe", "application/x-www-form-urlencoded"),
    (
        b"params=%ff%fe%00&id=%00&tags=%00&token=%00&type=%00&payload=%00&reason=%00",
        "application/x-www-form-urlencoded",
    ),
    (b"params=" + b"%5B" * 5_000, "application/x-www-form-urlencoded"),
    (b"&".join(b"a%d=1" % n for n in range(2_000)), "application/x-www-form-urlencoded"),
    (b"--x\r\n", "multipart/form-data; boundary=x"),
    (
        b'--x\r\nContent-Disposition: form-data; name="id"; filename="f"\r\n\r\nx\r\n--x--\r\n',
        "multipart/form-data; boundary=x",
    ),
    (b"x", "multipart/form-data"),
    (b"x", "nonsense"),
]


@pytest.mark.parametrize(("body", "kind"), BODIES, ids=range(len(BODIES)))
@pytest.mark.parametrize(
    "where",
    [
        "/workflows/process-order/start/",
        "/_f/workflows/process-order/check/",
        "/workflows/orders/instances/order-1/events/",
        "/workflows/orders/instances/order-1/terminate/",
        "/sign-in/",
        "/theme/",
    ],
)
def test_a_strange_body_is_the_senders_mistake(operator: Client, where: str, body: bytes, kind: str) -> None:
    instance = factories.instance("waiting", id="order-1")
    operator.raise_request_exception = False
    answer = operator.post(where, body, content_type=kind)
    assert answer.status_code < 500
    assert instance.refresh().status == "waiting"
    assert operator.get("/instances/").status_code == 200


def test_a_body_over_the_limit_is_said_to_be_too_large(operator: Client, settings) -> None:  # type: ignore[no-untyped-def]
    """Before it is read it is refused by the server, see tests/platform."""
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000
    answer = operator.post("/workflows/process-order/start/", {"params": "x" * 2_000})
    assert answer.status_code == 413
    assert b"Request too large" in answer.content


def test_parameters_over_a_mebibyte_are_refused_in_the_form(operator: Client) -> None:
    answer = operator.post("/workflows/process-order/start/", {"params": '"' + "x" * 1024 * 1024 + '"'})
    assert answer.status_code == 422
    assert b"Not started" in answer.content


@pytest.mark.parametrize(
    "where", ["/", "/instances/", "/workflows/orders/instances/x/", "/_f/live/?topic=home"]
)
def test_a_database_that_is_away_is_a_503_that_asks_again(
    operator: Client, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def refuse(self: BaseDatabaseWrapper) -> None:
        raise OperationalError("connection refused")

    operator.raise_request_exception = False
    with monkeypatch.context() as away:
        away.setattr(BaseDatabaseWrapper, "cursor", refuse)
        answer = operator.get(where)
    page = answer.content.decode()
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert '<meta http-equiv="refresh" content="5">' in page
    assert "connection refused" not in page
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert operator.get("/instances/").status_code == 200


def test_a_missing_instance_leads_to_those_of_its_workflow(operator: Client) -> None:
    page = operator.get("/workflows/orders/instances/nowhere/").content.decode()
    assert 'href="/instances/?query=workflow:orders">Show instances of orders</a>' in page
    assert '<a class="button" href="/">Go home</a>' in page


def test_an_address_of_nothing_leads_home(operator: Client) -> None:
    page = operator.get("/nowhere/").content.decode()
    assert '<a class="button" href="/instances/">Show instances</a>' in page
    assert '<a class="button" href="/">Go home</a>' in page
