"""One refusal for each status of problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest
from django.db import OperationalError
from django.http import HttpResponse

from engine.configuration import setting
from studio.api.problems import of_database, problem
from tests.studio.api.conftest import Program, Programs
from tests.studio.api.tour import BY_OPERATION, Call

Refusals = Callable[[], Mapping[int, HttpResponse]]
_PAUSE = BY_OPERATION["pause_instance"]
_FINISHED = _PAUSE.path.replace("1042", "1041")
_START = BY_OPERATION["start_instance"]


@pytest.fixture
def refusals(
    maria: Program,
    program_of: Programs,
    visit: Callable[[Program, Call], HttpResponse],
    settings,  # type: ignore[no-untyped-def]
) -> Refusals:
    def refused() -> Iterator[tuple[int, HttpResponse]]:
        yield 400, maria.send("POST", _START.path, b'{"params": {"customer": "Ana",}}')
        yield 401, Program("rpr_unknown").get("/me")
        yield 403, visit(program_of("viewer"), _PAUSE)
        yield 404, maria.get("/workflows/ship-order/instances/order-1")
        yield (
            409,
            visit(maria, Call("send_event", "POST", _FINISHED.replace("pause", "events"), {"type": "gift"})),
        )
        yield (
            412,
            visit(
                maria, Call("pause_instance", "POST", _PAUSE.path, {}, headers={"If-Match": '"1.0.queued.."'})
            ),
        )
        yield 413, maria.send("POST", _START.path, b" " * (setting("MAX_BODY_BYTES") + 1))
        yield 415, maria.send("POST", _START.path, b"id=order-1043", Content_Type="text/plain")
        wrong = {"params": {"customer": "Ana", "lines": [{"sku": "lamp-7", "quantity": 0}]}}
        yield 422, visit(maria, Call("start_instance", "POST", _START.path, wrong))
        settings.REPRISE = settings.REPRISE | {"API_RATE": 1}
        busy = program_of("viewer", name="busy")
        busy.get("/me")
        yield 429, busy.get("/me")
        yield 503, problem(of_database(OperationalError()))

    return lambda: dict(refused())
