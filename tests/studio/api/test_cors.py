"""Pages of other sites: none may call the API, unless a setting lists it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.http import HttpResponse
from django.test import Client, override_settings

from tests.studio.api.conftest import PREFIX, Program

pytestmark = pytest.mark.django_db

LISTED, OTHER = "https://shop.example", "https://evil.example"
ASKED = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}


@pytest.fixture
def listed() -> Iterator[None]:
    with override_settings(REPRISE={"API_CORS_ORIGINS": [LISTED]}):
        yield


def preflight(origin: str, path: str = "/workflows/tick/instances", **headers: str) -> HttpResponse:
    return Client().options(PREFIX + path, headers={"Origin": origin, **(headers or ASKED)})


def about_origins(answer: HttpResponse) -> dict[str, str]:
    return {name: value for name, value in answer.items() if name.startswith("Access-Control")}


def test_no_page_may_by_default(program: Program) -> None:
    for origin in (LISTED, "null", "http://testserver", ""):
        answer = program.get("/me", Origin=origin)
        assert (answer.status_code, about_origins(answer)) == (200, {})
        asked = preflight(origin)
        assert (asked.status_code, about_origins(asked)) == (401, {})


@pytest.mark.usefixtures("listed")
class TestListed:
    def test_its_preflight_is_answered_without_a_token(self) -> None:
        answer = preflight(LISTED)
        assert (answer.status_code, answer.content) == (204, b"")
        assert answer["Access-Control-Allow-Origin"] == LISTED
        assert answer["Access-Control-Allow-Methods"] == "POST"
        assert "Idempotency-Key" in answer["Access-Control-Allow-Headers"]
        assert answer["Access-Control-Max-Age"] == "600"
        assert "Origin" in answer["Vary"]

    def test_its_requests_are_answered_and_their_headers_shown(self, program: Program) -> None:
        for path in ("/me", "/nothing"):
            answer = program.get(path, Origin=LISTED)
            assert answer["Access-Control-Allow-Origin"] == LISTED
            assert "ETag" in answer["Access-Control-Expose-Headers"]
            assert answer["Cross-Origin-Resource-Policy"] == "cross-origin"
            assert "Origin" in answer["Vary"]
        assert Program("x").get("/me", Origin=LISTED)["Access-Control-Allow-Origin"] == LISTED

    def test_never_with_credentials(self, program: Program) -> None:
        for answer in (preflight(LISTED), program.get("/me", Origin=LISTED)):
            assert "Access-Control-Allow-Credentials" not in answer

    @pytest.mark.parametrize(
        "origin", [OTHER, "null", "https://shop.example.evil", "http://shop.example", "*"]
    )
    def test_others_may_not(self, program: Program, origin: str) -> None:
        answers = [preflight(origin), program.get("/me", Origin=origin)]
        assert [answer.status_code for answer in answers] == [401, 200]
        assert [about_origins(answer) for answer in answers] == [{}, {}]
        assert all("Origin" in answer["Vary"] for answer in answers)

    def test_options_without_the_question_are_another_method(self, program: Program) -> None:
        assert preflight(LISTED, **{"X-Nothing": "x"}).status_code == 401
        assert program.send("OPTIONS", "/me").status_code == 405
