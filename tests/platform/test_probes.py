"""The probes of a real server, asked as a kubelet asks: by an address, not by a name."""

from __future__ import annotations

import json
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse

import pytest

from tests.live import LiveStack

pytestmark = [pytest.mark.process, pytest.mark.second_tier]


def ask(stack: LiveStack, path: str, method: str = "GET") -> tuple[HTTPResponse, bytes]:
    with closing(HTTPConnection("127.0.0.1", stack.port, timeout=60)) as connection:
        connection.request(method, path, headers={"Host": "10.42.0.7:8000", "User-Agent": "kube-probe/1.31"})
        response = connection.getresponse()
        return response, response.read()


def test_probes_are_answered_by_any_name_and_pages_are_not(live_stack: LiveStack) -> None:
    assert ask(live_stack, "/sign-in/")[0].status == 400
    answer, body = ask(live_stack, "/healthz")
    assert (answer.status, answer.headers["Cache-Control"], json.loads(body)) == (
        200,
        "no-store",
        {"status": "ok"},
    )
    answer, body = ask(live_stack, "/readyz")
    found = json.loads(body)
    assert (answer.status, found["status"], found["is_healthy"]) == (200, "ready", True), found
    assert found["workers"] >= 1
    answer, body = ask(live_stack, "/readyz", "HEAD")
    assert (answer.status, body) == (200, b"")
