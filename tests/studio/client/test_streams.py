"""Streams go on after a lost connection, and end when the instance has ended: sync and async alike."""

from __future__ import annotations

import pytest

from studio.client import NotAllowedError, StreamEvent, UnavailableError, UnexpectedAnswerError
from studio.client.stream import Parser
from tests.studio.client.conftest import Ask
from tests.studio.client.stub import DROP, Reply, problem, serving

KIND = "text/event-stream; charset=utf-8"
OPENING = b"retry: 1000\n\n"
FIRST = b'id: 1\nevent: step\ndata: {"name": "a\xe2\x80\xa8b"}\n\n'
SECOND = b'id: 2\nevent: instance\ndata: {"status": "complete"}\n\n'
END = b'id: 3\nevent: end\ndata: {"status": "complete"}\n\n'
EVENTS = [
    StreamEvent("1", "step", {"name": "a\u2028b"}),
    StreamEvent("2", "instance", {"status": "complete"}),
    StreamEvent("3", "end", {"status": "complete"}),
]


def stream(*parts: bytes, **more: bool) -> Reply:
    return Reply(200, b"".join(parts), kind=KIND, **more)  # type: ignore[arg-type]


def test_a_stream_is_read_to_its_last_event(ask: Ask, pauses: list[float]) -> None:
    with serving(stream(OPENING, FIRST, b": still here\n\n", SECOND, END, b"id: 4\ndata: {}\n\n")) as stub:
        assert ask(stub.url, "subscribe", "tick", "a", types=["step", "instance"]) == EVENTS
    assert [one.path for one in stub.seen] == [
        "/api/v1/workflows/tick/instances/a/subscribe?types=step%2Cinstance"
    ]
    assert "Last-Event-Id" not in {name.title() for name in stub.seen[0].headers}


def test_it_goes_on_behind_the_last_event_that_came_whole(ask: Ask, pauses: list[float]) -> None:
    cut = stream(OPENING, FIRST, SECOND[:20], is_cut=True)
    with serving(cut, DROP, problem(503), stream(OPENING, SECOND), stream(END)) as stub:
        assert ask(stub.url, "subscribe", "tick", "a", cursor="0") == EVENTS
    after = [{name.title(): text for name, text in one.headers.items()}["Last-Event-Id"] for one in stub.seen]
    assert after == ["0", "1", "1", "1", "2"]
    assert len(pauses) == 4
    assert min(pauses) >= 1  # as the stream asks


def test_a_stream_with_nothing_left_is_over(ask: Ask, pauses: list[float]) -> None:
    with serving(Reply(204, b"")) as stub:
        assert ask(stub.url, "subscribe", "tick", "a", cursor="3") == []
    assert (len(stub.seen), pauses) == (1, [])


def test_who_may_not_read_on_is_told(ask: Ask, pauses: list[float]) -> None:
    ended = b'event: error\ndata: {"status": 403, "code": "not_allowed", "detail": "No more."}\n\n'
    for reply in (stream(FIRST, ended), problem(403, "not_allowed", "No more.")):
        with serving(reply) as stub, pytest.raises(NotAllowedError, match="No more"):
            ask(stub.url, "subscribe", "tick", "a")
        assert len(stub.seen) == 1
    with serving(Reply(200, {})) as stub, pytest.raises(UnexpectedAnswerError, match="not with a stream"):
        ask(stub.url, "subscribe", "tick", "a")


def test_it_gives_up_where_connections_bring_no_event(ask: Ask, pauses: list[float]) -> None:
    for reply in (DROP, stream(OPENING)):
        with serving(reply) as stub, pytest.raises(UnavailableError):
            ask(stub.url, "subscribe", "tick", "a", options={"retries": 2})
        assert len(stub.seen) == 3


def test_pieces_of_any_size_give_the_same_events() -> None:
    text = OPENING + FIRST.replace(b"\n", b"\r\n") + b"event: x\nid: 2\n\ndata: a\ndata: b\nfoo\n:\n\n" + END
    parser = Parser()
    whole = list(parser.feed(text))
    parser = Parser()
    assert [event for at in range(len(text)) for event in parser.feed(text[at : at + 1])] == whole
    assert [(one.id, one.type) for one in whole] == [("1", "step"), ("2", "message"), ("3", "end")]
    assert (whole[1].data, parser.retry) == ("a\nb", 1.0)
