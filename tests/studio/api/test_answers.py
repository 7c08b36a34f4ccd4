"""Every answer is as the document says, and the examples in it are real."""

from __future__ import annotations

import json
from collections.abc import Callable

from django.http import HttpResponse

from tests.docs.made.openapi import document, problems, stream
from tests.studio.api import documented
from tests.studio.api.conftest import Program
from tests.studio.api.problem_tour import Refusals, refusals
from tests.studio.api.shown import shown
from tests.studio.api.tour import BY_OPERATION, CALLS, Call

__all__ = ["refusals"]  # a fixture

Visit = Callable[[Program, Call], HttpResponse]


def test_every_answer_is_as_the_document_says_and_as_its_example(maria: Program, visit: Visit) -> None:
    examples = json.loads(document.EXAMPLES.read_text())
    for call in CALLS:
        answer = visit(maria, call)
        assert (answer.status_code, documented.wrong(call.operation, answer)) == (call.status, []), call
        assert shown(answer.content.decode()) == examples[call.operation]["answer"], call.operation
        assert call.body == examples[call.operation].get("request"), call.operation


def test_every_request_is_as_the_document_says() -> None:
    for call in CALLS:
        body = documented.operations()[call.operation].get("requestBody")
        assert (call.body is None) == (body is None), call
        if body is not None:
            assert documented.invalid(body["content"]["application/json"]["schema"], call.body) == [], call


def test_every_operation_is_asked() -> None:
    assert sorted({*documented.operations()} - {stream.NAME}) == sorted(BY_OPERATION)


def test_problems_are_as_the_document_says_and_as_their_examples(refusals: Refusals) -> None:
    examples = json.loads(document.EXAMPLES.read_text())["problems"]
    answers = refusals()
    assert sorted(answers) == sorted(problems.NAMES)
    for status, answer in answers.items():
        # The last one comes from no operation.
        wrong = [
            one
            for one in documented.wrong("pause_instance", answer)
            if status != 503 or "RateLimit" not in one
        ]
        assert (answer.status_code, wrong) == (status, []), answer.content
        assert shown(answer.content.decode()) == examples[str(status)], status


def test_a_replayed_answer_says_so(maria: Program, shop: object) -> None:
    start = BY_OPERATION["start_instance"]
    first, second = (maria.post(start.path, start.body, Idempotency_Key="a1") for _ in range(2))
    assert first.content == second.content
    assert "Idempotency-Replayed" not in first
    assert second["Idempotency-Replayed"] == "true"
    assert documented.wrong("start_instance", second) == []
