"""The return annotation of whatever users pass as a step's body."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any
from weakref import WeakKeyDictionary

import pytest

from engine.replay.attempts import functions
from engine.values.serialization import Codec, return_annotation

if TYPE_CHECKING:
    from somewhere import Missing


class Report:
    pass


def plain() -> Report: ...
async def coroutine() -> list[Report]: ...
def nothing() -> None: ...
def without(): ...
def anything() -> Any: ...
def undefined() -> Missing: ...
def bad_argument(x: Missing) -> int: ...
def broken() -> "1 +": ...  # noqa: F722
def awaitable() -> Awaitable[int]: ...
def coroutine_type() -> Coroutine[Any, Any, datetime]: ...
def extra() -> Annotated[int, "note"]: ...


class Service:
    def method(self) -> Report: ...

    @classmethod
    def of_class(cls) -> int: ...

    @staticmethod
    def static() -> str: ...

    def __call__(self) -> datetime: ...


class Silent:
    def __call__(self): ...


@functools.wraps(plain)
def wrapper(*args):
    return plain(*args)


@pytest.mark.parametrize(
    ("fn", "annotation"),
    [
        (plain, Report),
        (coroutine, list[Report]),
        (nothing, type(None)),
        (without, Any),
        (lambda: 1, Any),
        (undefined, Any),
        (broken, Any),
        (bad_argument, int),
        (awaitable, int),
        (coroutine_type, datetime),
        (extra, Annotated[int, "note"]),
        (Service().method, Report),
        (Service.of_class, int),
        (Service.static, str),
        (Service(), datetime),
        (Silent(), Any),
        (functools.partial(plain), Report),
        (functools.partial(functools.partial(Service().method)), Report),
        (functools.lru_cache(plain), Report),
        (wrapper, Report),
        (print, Any),
        (len, Any),
        ("text".upper, Any),
        (Report, Any),
    ],
)
def test_the_annotation_of(fn, annotation):
    assert return_annotation(fn) == annotation


def test_a_class_of_an_enclosing_function_is_found():
    class Local:
        pass

    def body() -> Local:
        return Local()

    assert return_annotation(body) is Local


def test_no_annotation_keeps_plain_json():
    assert Codec.of(return_annotation(without)).schema() is None


@pytest.mark.parametrize("body", [plain, anything, without])
def test_the_annotation_of_a_body_that_many_steps_call_is_looked_up_once(
    body: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[object] = []

    def look_up(fn: Callable[..., object]) -> Any:
        looked_up.append(fn)
        return return_annotation(fn)

    monkeypatch.setattr(functions, "_codecs", WeakKeyDictionary())
    monkeypatch.setattr(functions, "return_annotation", look_up)
    for _ in range(3):
        functions.codec_of(body)
    assert looked_up == [body]
