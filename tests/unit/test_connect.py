"""What a worker's connection makes of a statement's parameters."""

from __future__ import annotations

from engine.worker.database.connect import _numbered


def test_named_parameters_become_numbers_in_the_order_of_their_first_use() -> None:
    statement, names = _numbered("SELECT %(b)s, %(a)b, %(b)s, 7 %% 2")
    assert statement == b"SELECT $1, $2, $1, 7 % 2"
    assert names == ["b", "a"]
