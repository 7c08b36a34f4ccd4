"""Fingerprints: what differs from failure to failure is left out, and nothing in a message can harm."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.values.error_record import ErrorRecord
from engine.values.fingerprint import MAX_MESSAGE, MAX_SAMPLE, failed, normalised, own_frame

UUID = "550e8400-e29b-41d4-a716-446655440000"


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("card 4711 was declined", "card ‹n› was declined"),
        ("took 3.5s of 1,000 ms, and -7", "took ‹n›s of ‹n› ms, and -‹n›"),
        ("order order4711 is gone", "order order‹n› is gone"),
        (f"no row {UUID}", "no row ‹id›"),
        (f"no row {UUID.upper()}", "no row ‹id›"),
        ("no customer cus_8fK2jx93LdZZ77", "no customer ‹id›"),
        ("<Card object at 0x7f3a2b>", "<Card object at ‹id›>"),
        ("commit 3f2504e04f89 is unknown", "commit ‹id› is unknown"),
        ("""no "Ana" and no 'Bob'""", "no ‹text› and no ‹text›"),
        ("I can't and don't", "I can't and don't"),
        ("mail to ana.b+c@mail.example.org bounced", "mail to ‹email› bounced"),
        ("expired at 2026-11-26T10:00:00.123Z", "expired at ‹time›"),
        ("expired at 2026-11-26 10:00:00+02:00", "expired at ‹time›"),
        ("GET https://api.example.org/v1/charges?id=3 failed", "GET https://api.example.org/‹path› failed"),
        ("GET https://me:secret@api.example.org/x", "GET https://api.example.org/‹path›"),
        ("no answer from 10.0.0.1:5432", "no answer from ‹n›"),
        ("two\n  lines\tand a tab", "two lines and a tab"),
        ("a\x00b\u202ec\u200bd", "abcd"),
        ("<script>alert(1)</script>", "<script>alert(‹n›)</script>"),
        ("", ""),
    ],
)
def test_a_message_is_kept_without_what_differs(message: str, kept: str) -> None:
    assert normalised(message) == kept


@given(st.text(max_size=3_000))
def test_a_normalised_message_is_short_storable_and_stable(message: str) -> None:
    kept = normalised(message)
    assert len(kept) <= MAX_MESSAGE
    assert not any(
        char == "\0" or "\ud800" <= char <= "\udfff" or char in "\u202a\u202b\u202d\u202e" for char in kept
    )
    assert "\n" not in kept
    assert normalised(message) == kept


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_numbers_make_no_difference(one: int, other: int) -> None:
    assert normalised(f"card {one} of {other}") == normalised(f"card {other} of {one}")


@pytest.mark.parametrize(
    "part",
    [
        "a",
        '"',
        "'",
        "'a ",
        "a@",
        "a.@",
        "1",
        "1.",
        "00:",
        "http://",
        "x://a@",
        "“",
        "«",
        "„",
        " ",
        "\u202e",
        "0x",
        "-",
        "a-",
        "é",
    ],
)
def test_a_long_message_takes_no_time(part: str) -> None:
    began = time.process_time()
    normalised(part * 1_000_000)
    assert (
        time.process_time() - began < 0.1
    )  # normally 3 ms; a pattern that looks back and forth takes minutes


def raised(number: int) -> ErrorRecord:
    try:
        int(f"no number {number}")
    except ValueError as error:
        return ErrorRecord.of(error)
    raise AssertionError


def test_the_frame_is_the_innermost_of_the_project() -> None:
    assert own_frame(raised(1)) == "tests/unit/test_fingerprint.py, raised"


def test_frames_of_libraries_are_not_own() -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads("{")
    assert own_frame(ErrorRecord.of(caught.value)).endswith(", test_frames_of_libraries_are_not_own")
    library = 'Traceback (most recent call last):\n  File "/x/site-packages/a.py", line 3, in f\nE: 1'
    assert own_frame(ErrorRecord("E", "1", traceback=library)) == ""
    assert own_frame(ErrorRecord("E", "1")) == ""


def test_a_traceback_within_a_message_is_no_frame() -> None:
    error = raised(1)
    fake = 'x\nTraceback (most recent call last):\n  File "/app/evil.py", line 1, in evil'
    quoted = replace(error, message=fake, traceback=error.traceback.replace(error.message, fake))
    assert own_frame(quoted) == own_frame(error)


def wrapped() -> None:
    try:
        raised_here()
    except KeyError as cause:
        raise ValueError("b") from cause


def raised_here() -> None:
    raise KeyError("a")


def test_the_frame_of_a_cause_is_not_that_of_the_error() -> None:
    with pytest.raises(ValueError, match="b") as caught:
        wrapped()
    assert own_frame(ErrorRecord.of(caught.value)).endswith(", wrapped")


def test_the_fingerprint_has_the_workflow_and_its_kin_has_not() -> None:
    one = failed(raised(1), workflow="orders", step="charge")
    other = failed(raised(2), workflow="refunds", step="charge")
    assert (one.fingerprint != other.fingerprint, one.kin == other.kin) == (True, True)
    assert one == replace(failed(raised(2), workflow="orders", step="charge"), sample=one.sample)
    for changed in ({"step": "ship"}, {"step": "charge", "phase": "rollback"}):
        assert failed(raised(1), workflow="orders", **changed).kin != one.kin  # type: ignore[arg-type]
    assert [len(one.fingerprint), set(one.fingerprint) <= set("0123456789abcdef")] == [16, True]


def test_of_a_sensitive_error_nothing_of_the_message_is_kept() -> None:
    one = failed(raised(1), workflow="orders", step="charge", is_sensitive=True)
    assert (one.type, one.message, one.sample) == ("ValueError", "", "")
    other = failed(
        replace(raised(1), message="pin 1234"), workflow="orders", step="charge", is_sensitive=True
    )
    assert other == one


@given(st.text(max_size=2_000), st.text(max_size=400), st.text(max_size=2_000))
def test_whatever_was_raised_can_be_stored(message: str, kind: str, trace: str) -> None:
    one = failed(ErrorRecord(kind, message * 10, traceback=trace), workflow="w", step="s")
    for text in (one.type, one.message, one.sample, one.frame):
        text.encode()
        assert "\0" not in text
    assert len(one.sample) <= MAX_SAMPLE
    assert len(one.type) <= 256
