"""How the client behaves towards servers that fail, redirect, or are something else: sync and async alike."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from engine.version import VERSION
from studio.client import (
    AddressError,
    ApiError,
    AsyncClient,
    Client,
    ConflictError,
    InvalidError,
    NotAllowedError,
    NotAuthenticatedError,
    NotFoundError,
    RateLimitedError,
    UnavailableError,
    UnexpectedAnswerError,
    WaitTimeoutError,
)
from tests.live import free_port
from tests.studio.client.conftest import TOKEN, Ask
from tests.studio.client.stub import DROP, Reply, problem, serving

STARTED = Reply(201, {"instance": {"id": "a", "created_at": "2026-11-24T09:00:00+00:00"}})
ME = Reply(200, {"name": "ci", "expires_at": None})


def test_a_post_is_repeated_with_the_same_key_until_it_is_answered(ask: Ask, pauses: list[float]) -> None:
    with serving(DROP, problem(503), problem(502), STARTED) as stub:
        found = ask(stub.url, "start", "tick", {"n": 1}, id="a")
    assert found["created_at"] == datetime(2026, 11, 24, 9, tzinfo=UTC)
    assert [(one.method, one.path) for one in stub.seen] == [("POST", "/api/v1/workflows/tick/instances")] * 4
    assert len({one.headers["Idempotency-Key"] for one in stub.seen}) == 1
    assert {one.body for one in stub.seen} == {b'{"params":{"n":1},"reason":"","id":"a"}'}
    assert len(pauses) == 3
    assert all(0.125 * 2**n <= pause <= 0.25 * 2**n for n, pause in enumerate(pauses))


def test_two_calls_have_two_keys_and_one_of_your_own_is_sent(ask: Ask) -> None:
    with serving(STARTED) as stub:
        for _ in range(2):
            ask(stub.url, "start", "tick")
        ask(stub.url, "start", "tick", idempotency_key="mine")
    keys = [one.headers["Idempotency-Key"] for one in stub.seen]
    assert (len(set(keys)), keys[2]) == (3, "mine")


def test_a_deletion_is_not_repeated_after_an_answer_was_lost(ask: Ask, pauses: list[float]) -> None:
    for reply in (DROP, problem(502)):
        with serving(reply) as stub, pytest.raises(UnavailableError):
            ask(stub.url, "delete", "tick", "a", reason="x")
        assert len(stub.seen) == 1
    with serving(problem(503), Reply(200, {"deleted": {"workflow": "tick", "id": "a"}})) as stub:
        assert ask(stub.url, "delete", "tick", "a", reason="x") == {"workflow": "tick", "id": "a"}


@pytest.mark.parametrize(
    ("reason", "query"),
    [
        ("die Kundin & ihr Anwalt +1", "?reason=die+Kundin+%26+ihr+Anwalt+%2B1"),
        ("x" * 1000, f"?reason={'x' * 1000}"),
        ("x" * 1001, ""),
        ("ü" * 200, ""),  # six characters each
        ("two\nlines", ""),
    ],
)
def test_the_reason_of_a_deletion_is_in_the_address_if_it_fits(ask: Ask, reason: str, query: str) -> None:
    with serving(Reply(200, {"deleted": {"workflow": "tick", "id": "a"}})) as stub:
        ask(stub.url, "delete", "tick", "a", reason=reason)
    [seen] = stub.seen
    assert (seen.method, seen.path) == ("DELETE", f"/api/v1/workflows/tick/instances/a{query}")
    assert (seen.body == b"") == ("Content-Type" not in seen.headers) == bool(query)
    if not query:
        assert json.loads(seen.body) == {"reason": reason}


def test_retry_after_is_kept_to_as_seconds_and_as_a_date(ask: Ask, pauses: list[float]) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    limits = [problem(429, headers={"Retry-After": wanted}) for wanted in ("7", soon)]
    with serving(*limits, ME) as stub:
        ask(stub.url, "me")
    assert pauses[0] == 7
    assert 5 < pauses[1] <= 20


def test_who_should_wait_longer_than_it_may_gets_an_error(ask: Ask, pauses: list[float]) -> None:
    reply = problem(429, "too_many_requests", headers={"Retry-After": "31"})
    with serving(reply) as stub, pytest.raises(RateLimitedError) as caught:
        ask(stub.url, "me")
    assert (caught.value.retry_after, caught.value.code, pauses) == (31, "too_many_requests", [])


def test_it_gives_up_in_the_end(ask: Ask, pauses: list[float]) -> None:
    reply = problem(503, "database_unavailable", "The database does not answer. Try again.")
    with serving(reply) as stub, pytest.raises(UnavailableError, match="The database does not") as caught:
        ask(stub.url, "me", options={"retries": 2})
    assert (len(stub.seen), caught.value.status) == (3, 503)
    with pytest.raises(UnavailableError, match="cannot be reached: "):
        ask(f"http://127.0.0.1:{free_port()}", "me", options={"retries": 1})


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidError),
        (401, NotAuthenticatedError),
        (403, NotAllowedError),
        (404, NotFoundError),
        (409, ConflictError),
        (412, ConflictError),
        (413, InvalidError),
        (422, InvalidError),
        (500, UnexpectedAnswerError),
    ],
)
def test_each_refusal_has_its_class_and_says_what_is_wrong(
    ask: Ask, status: int, kind: type[ApiError]
) -> None:
    wrong = [{"path": "params/n", "code": "int_type", "message": "Input should be a valid integer"}]
    with (
        serving(problem(status, "a_code", "A sentence.", errors=wrong)) as stub,
        pytest.raises(kind) as caught,
    ):
        ask(stub.url, "me")
    found = caught.value
    assert type(found) is kind
    assert (found.status, found.code, str(found), list(found.errors)) == (
        status,
        "a_code",
        "A sentence.",
        wrong,
    )


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(200, b"<h1>Welcome</h1>", kind="text/html"), "answered 200 with text/html"),
        (Reply(404, b"<h1>Nothing</h1>", kind="text/html; charset=utf-8"), "answered 404 with text/html"),
        (Reply(200, b"{", kind="application/json"), "answered 200 with text that is not JSON"),
        (Reply(403, {"message": "by the proxy"}), "answered 403 with JSON without a problem"),
        (
            Reply(302, b"", {"Location": "https://elsewhere.example/login"}),
            "redirects to https://elsewhere.example",
        ),
    ],
)
def test_what_is_not_the_api_is_named(ask: Ask, reply: Reply, said: str) -> None:
    with serving(reply) as stub, pytest.raises(UnexpectedAnswerError, match=said):
        ask(stub.url, "me")
    assert len(stub.seen) == 1


def test_a_redirect_never_gets_the_token(ask: Ask) -> None:
    with (
        serving(ME) as other,
        serving(Reply(307, b"", {"Location": other.url})) as stub,
        pytest.raises(UnexpectedAnswerError),
    ):
        ask(stub.url, "me")
    assert other.seen == []


def test_a_proxy_of_the_environment_never_gets_a_request_to_this_machine(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(ME) as proxy, serving(ME) as stub:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        ask(stub.url, "me")
    assert (len(stub.seen), proxy.seen) == (1, [])


def test_lists_are_read_page_by_page(ask: Ask) -> None:
    pages = [
        Reply(200, {"instances": [{"id": "c"}, {"id": "b"}], "next_cursor": "7"}),
        Reply(200, {"instances": [], "next_cursor": "5"}),
        Reply(200, {"instances": [{"id": "a"}], "next_cursor": None}),
    ]
    with serving(*pages) as stub:
        found = ask(stub.url, "instances", status=["open", "errored"], workflow="a b")
    assert [one["id"] for one in found] == ["c", "b", "a"]
    query = "/api/v1/instances?workflow=a+b&status=open&status=errored&limit=100"
    assert [one.path.replace("%20", "+") for one in stub.seen] == [
        query,
        f"{query}&cursor=7",
        f"{query}&cursor=5",
    ]


def test_addresses_are_quoted_and_lie_below_any_prefix(ask: Ask) -> None:
    with serving(Reply(200, {"schedule": {}})) as stub:
        ask(f"{stub.url}/apps/reprise/", "pause_schedule", "tick", "*/5 * * * *")
        ask(f"{stub.url}/api/v1/", "pause_schedule", "tick", "../../me?x#y")
    assert [one.path for one in stub.seen] == [
        "/apps/reprise/api/v1/schedules/tick/%2A%2F5%20%2A%20%2A%20%2A%20%2A/pause",
        "/api/v1/schedules/tick/..%2F..%2Fme%3Fx%23y/pause",
    ]


def test_values_of_workflows_are_left_as_they_are(ask: Ask) -> None:
    params = {"created_at": "2026-11-24T09:00:00+00:00", "at": "noon", "n": 1e16}
    shown = {"instance": {"params": params, "output": params, "created_at": "2026-11-24T09:00:00+00:00"}}
    with serving(Reply(200, shown)) as stub:
        found = ask(stub.url, "instance", "tick", "a")["instance"]
    assert found["params"] == found["output"] == params
    assert found["created_at"] == datetime(2026, 11, 24, 9, tzinfo=UTC)


def test_what_json_does_not_have_is_refused_before_anything_is_sent(ask: Ask) -> None:
    with serving(STARTED) as stub:
        for params in (float("nan"), {1, 2}):
            with pytest.raises((ValueError, TypeError)):
                ask(stub.url, "start", "tick", params)
    assert stub.seen == []


def test_waiting_looks_less_and_less_often_and_ends_with_the_instance(ask: Ask, pauses: list[float]) -> None:
    looks = [
        Reply(200, {"instance": {"status": status}}) for status in ("queued", "running", "running", "errored")
    ]
    with serving(*looks) as stub:
        assert ask(stub.url, "wait", "tick", "a") == {"status": "errored"}
    assert pauses == pytest.approx([0.2, 0.3, 0.45])
    with serving(looks[1]) as stub, pytest.raises(WaitTimeoutError, match="tick/a is running after 0 s"):
        ask(stub.url, "wait", "tick", "a", timeout=0)


# The token


def test_the_token_is_nowhere_but_in_its_header(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), serving(problem(401)) as stub:
        with pytest.raises(NotAuthenticatedError) as caught:
            ask(stub.url, "me")
        for made in (Client(stub.url, TOKEN), AsyncClient(stub.url, TOKEN)):
            assert TOKEN not in f"{made!r} {made._settings!r}"
    assert stub.seen[0].headers["Authorization"] == f"Bearer {TOKEN}"
    assert stub.seen[0].headers["User-Agent"] == f"reprise-client/{VERSION}"
    assert TOKEN not in caplog.text + repr(caught.value) + str(caught.value.__context__)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "Which Studio"),
        ("studio.example.org", "begins with https:// or http://"),
        ("ftp://studio.example.org", "begins with https:// or http://"),
        ("http://studio.example.org", "would send the token unencrypted"),
        ("http://127.0.0.1.example.org", "would send the token unencrypted"),
        ("https://ada:pw@studio.example.org", "has a user or a password"),
        ("https://studio.example.org/?a=1", "ends before"),
        ("https://studio.example.org:port", "not a URL"),
        ("https://[::1", "not a URL"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(url: str, said: str) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(AddressError, match=said) as caught:
            kind(url, TOKEN)
        assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://localhost:8000", "http://[::1]:8000", "https://studio.example.org/x"]
)
def test_other_addresses_are_not(url: str) -> None:
    with Client(url, TOKEN) as client:
        assert repr(client) == f"<Client {url}>"


@pytest.mark.parametrize("token", ["", "  ", "rpr_a\nb", "rpr_ä", "rpr a"])
def test_a_token_that_is_none_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(AddressError) as caught:
        Client("https://studio.example.org", token)
    assert not token.strip() or token not in str(caught.value)


def test_address_and_token_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPRISE_URL", "http://studio.example.org")
    monkeypatch.setenv("REPRISE_TOKEN", f"{TOKEN}\n")
    with pytest.raises(AddressError, match="REPRISE_INSECURE=1"):
        Client()
    monkeypatch.setenv("REPRISE_INSECURE", "1")
    with Client() as client:
        assert (repr(client), client._settings.token) == ("<Client http://studio.example.org>", TOKEN)


def test_both_clients_have_the_same_methods() -> None:
    names = [{name for name in vars(kind) if not name.startswith("_")} for kind in (Client, AsyncClient)]
    assert names[0] == names[1]
