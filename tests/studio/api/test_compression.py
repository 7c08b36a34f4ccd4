"""Answers are compressed for clients that accept it."""

from __future__ import annotations

import gzip

import pytest

from tests.studio import factories
from tests.studio.api.conftest import Program

pytestmark = pytest.mark.django_db


def test_a_long_answer_is_compressed(program: Program) -> None:
    for number in range(20):
        factories.instance(id=f"many-{number}")
    answer = program.get("/instances", Accept_Encoding="gzip")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert b"many-1" in gzip.decompress(answer.content)
    assert "Content-Encoding" not in program.get("/instances").headers
