"""What is kept of an exception, whatever the exception does."""

import json
import sys
import time

import pytest
from pydantic import BaseModel, SecretStr

from engine.values.error_record import MAX_BYTES, ErrorRecord, cut, storable


def caught(make):
    try:
        make()
    except BaseException as error:  # noqa: BLE001 - whatever it is
        return error
    raise AssertionError("nothing was raised")


def kept(error):
    """Record an error, and check what holds for every record: it is storable, bounded, and read back equal."""
    record = ErrorRecord.of(error)
    text = json.dumps(record.to_json(), ensure_ascii=False, allow_nan=False)
    assert "\x00" not in record.message + record.traceback + record.type
    assert "\\u0000" not in text
    assert len(record.message.encode()) <= MAX_BYTES
    assert len(record.traceback.encode()) <= MAX_BYTES
    assert len(json.dumps(record.details, ensure_ascii=False).encode()) <= MAX_BYTES
    assert ErrorRecord.from_json(json.loads(text)) == record
    return record


class Declined(Exception):
    def __init__(self, code):
        super().__init__("no funds")
        self.code = code
        self.card = {"last": ["4", 2, None, 1.5, (1, 2)]}
        self.handle = object()
        self.ratio = float("nan")
        self.huge = 2**64
        self._secret = "s"


def test_type_message_attributes_and_traceback_are_kept():
    def charge():
        raise Declined(51)

    record = kept(caught(charge))
    assert (record.type, record.message) == ("Declined", "no funds")
    assert record.details == {"code": 51, "card": {"last": ["4", 2, None, 1.5, [1, 2]]}}
    lines = record.traceback.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "Declined: no funds"
    assert "raise Declined(51)" in record.traceback


def test_a_class_made_inside_a_function_has_its_own_name():
    class Local(Exception):
        pass

    assert kept(Local("x")).type == "Local"


class Raising(Exception):
    def __init__(self, what):
        self.what_str_raises = what

    def __str__(self):
        raise self.what_str_raises


@pytest.mark.parametrize("what", [ValueError("x"), SystemExit(3), KeyboardInterrupt(), RecursionError()])
def test_a_str_that_raises(what):
    record = kept(caught(lambda: (_ for _ in ()).throw(Raising(what))))
    assert record.message == f"(its text cannot be shown: __str__ raised {type(what).__name__})"
    assert record.traceback.endswith(f"Raising: {record.message}")


def test_a_str_that_returns_no_text():
    class Odd(Exception):
        def __str__(self):
            return 5

    assert kept(Odd()).message == "(its text cannot be shown: __str__ raised TypeError)"


def test_a_message_of_10_mb_is_cut_and_says_so():
    record = kept(ValueError("é" * 5_000_000))
    assert record.message.startswith("ééé")
    assert record.message.endswith("… (cut, 5,000,000 characters)")
    assert len(record.message.encode()) in (MAX_BYTES - 1, MAX_BYTES)


def test_a_message_of_just_the_limit_is_kept_whole():
    assert kept(ValueError("x" * MAX_BYTES)).message == "x" * MAX_BYTES
    assert kept(ValueError("x" * (MAX_BYTES + 1))).message.endswith(f"… (cut, {MAX_BYTES + 1:,} characters)")


def test_nul_and_lone_surrogates_are_replaced():
    error = ValueError("a\x00b\ud800c")
    error.note = "x\x00"
    error.__dict__["k\x00"] = "v"
    record = kept(error)
    assert record.message == "a\ufffdb\ufffdc"
    assert record.details == {"note": "x\ufffd", "k\ufffd": "v"}


def test_a_chain_of_1000_causes():
    error = None
    for number in range(1000):
        following = ValueError(f"cause {number}")
        following.__cause__ = error
        error = following
    record = kept(error)
    lines = record.traceback.splitlines()
    assert lines[0] == "… (earlier causes omitted)"
    assert lines[-1] == "ValueError: cause 999"
    assert "ValueError: cause 992" in lines
    assert "ValueError: cause 991" not in lines
    assert "The above exception was the direct cause of the following exception:" in lines


def test_a_circle_of_causes_ends():
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert kept(first).traceback.splitlines()[-1] == "ValueError: first"


def test_a_context_is_shown_unless_suppressed():
    def fail(*, suppress):
        try:
            raise KeyError("inner")  # noqa: TRY301
        except KeyError:
            if suppress:
                raise ValueError("outer") from None
            raise ValueError("outer")  # noqa: B904

    shown = caught(lambda: fail(suppress=False))
    hidden = caught(lambda: fail(suppress=True))
    assert "KeyError: 'inner'" in kept(shown).traceback
    assert "KeyError: 'inner'" not in kept(hidden).traceback


def test_a_recursion_error_keeps_the_first_and_the_last_frames():
    def down(n):
        return down(n + 1)

    record = kept(caught(lambda: down(0)))
    assert record.type == "RecursionError"
    assert "frames omitted" in record.traceback
    assert record.traceback.startswith("Traceback (most recent call last):")


def test_a_record_can_be_made_where_the_stack_is_nearly_used_up():
    def down(n):
        try:
            return down(n + 1)
        except RecursionError as error:
            return ErrorRecord.of(error)

    assert down(0).type == "RecursionError"
    assert sys.getrecursionlimit() >= 1000


def test_groups_show_what_is_in_them_with_a_bound():
    inner = [caught(lambda: int("x")), KeyError("k")] + [ValueError(str(n)) for n in range(1000)]
    record = kept(ExceptionGroup("two failed", [ExceptionGroup("nested", inner), TypeError("t")]))
    assert record.message == "two failed (2 sub-exceptions)"
    assert "+ 1: ExceptionGroup: nested" in record.traceback
    assert "+ 2: ValueError: invalid literal for int()" in record.traceback
    assert "    + 8: ValueError: 4" in record.traceback
    assert record.traceback.endswith("\n  … (more omitted)")


def test_a_group_nested_10000_times():
    error = ValueError("x")
    for _ in range(10_000):
        error = ExceptionGroup("g", [error])
    assert kept(error).type == "ExceptionGroup"


def test_the_end_of_a_long_traceback_is_kept():
    error = ValueError("the end")
    error.__cause__ = ValueError("x" * 20_000)
    record = kept(error)
    assert record.traceback.startswith("ValueError: xxx")
    assert "characters)" in record.traceback
    assert record.traceback.endswith("ValueError: the end")


def test_notes_are_part_of_the_traceback():
    error = ValueError("x")
    error.add_note("see the manual")
    assert kept(error).traceback == "ValueError: x\nsee the manual"
    error.__notes__ = 5
    assert kept(error).traceback == "ValueError: x"


@pytest.mark.parametrize("make", [lambda: sys.exit(3), KeyboardInterrupt, GeneratorExit, MemoryError])
def test_errors_that_are_no_exceptions(make):
    error = make() if isinstance(make, type) else caught(make)
    assert kept(error).type == type(error).__name__


def test_attributes_that_hurt_are_skipped():
    class BadDict(dict):
        def items(self):
            raise RuntimeError

    class BadStr(str):
        __slots__ = ()

        def encode(self, *args):
            raise RuntimeError

    error = ValueError("x")
    error.circle = circle = []
    circle.append(circle)
    error.bad, error.text, error.large, error.wide = (
        BadDict(a=1),
        BadStr("x"),
        "x" * 20_000,
        list(range(1000)),
    )
    error.key, error.callable, error.good = {1: 2}, print, [True]
    assert kept(error).details == {"good": [True]}


def test_details_are_bounded_as_a_whole():
    error = ValueError("x")
    for number in range(200):
        setattr(error, f"a{number}", "\\" * 1000)
    assert len(kept(error).details) == 8


def test_a_class_that_lies_about_itself():
    class Meta(type):
        def __getattribute__(cls, name):
            raise RuntimeError

    class Liar(Exception, metaclass=Meta):
        @property
        def __dict__(self):
            raise RuntimeError

    record = kept(Liar("x"))
    assert (record.message, record.details) == ("x", {})


def test_a_record_that_something_else_wrote_is_still_read():
    assert ErrorRecord.from_json({}) == ErrorRecord("Error", "")
    assert ErrorRecord.from_json({"type": 5, "message": None, "details": [1]}) == ErrorRecord("Error", "")


@pytest.mark.second_tier
def test_recording_is_quick_whatever_the_size():
    error = None
    for _ in range(1000):
        following = ValueError("x" * 1_000_000)
        following.__cause__ = error
        error = following
    started = time.process_time()
    kept(error)
    assert time.process_time() - started < 2


def test_a_text_is_cut_at_bytes_between_characters():
    assert cut("abc", 100) == "abc"
    assert cut("ä" * 100, 60) == "ä" * 17 + "… (cut, 100 characters)"
    assert storable("a\x00\udfff😀") == "a\ufffd\ufffd😀"


def test_what_pydantic_says_is_kept_without_the_values():
    """It shows the whole input where one field is missing."""

    class Login(BaseModel):
        user: str
        pin: int
        password: SecretStr

    given = {"password": "hunter2", "pin": "hunter2"}
    wrapped = caught(lambda: raise_from(caught(lambda: Login(**given))))
    group = ExceptionGroup("both", [caught(lambda: Login(**given))])
    for error in (caught(lambda: Login(**given)), wrapped, group):
        record = kept(error)
        assert "hunter2" not in json.dumps(record.to_json())
        assert "2 validation errors for Login\nuser\n  Field required [type=missing]" in record.traceback
        assert "pin\n  Input should be a valid integer" in record.traceback


def raise_from(cause):
    raise RuntimeError("wrapped") from cause
