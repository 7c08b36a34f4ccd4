"""Single inputs: which one shows a value, and what a typed text means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from studio.forms.controls import MOMENT, Choice, Control
from studio.forms.document import MISSING, dump, parse
from studio.forms.json_text import read_text
from studio.forms.shape import Shape

MOST_RADIOS = 4
LONG_TEXT = 120  # characters; a text that may be longer gets a text area
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,3})?)?"
_TIME = re.compile(_CLOCK, re.ASCII)
_MOMENT = re.compile(rf"((\d{{4}}-\d\d-\d\d)T{_CLOCK})(Z|[+-]\d\d:\d\d)?", re.ASCII)
_NO_INPUT_KEEPS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\u2028\u2029]")


def shows(shape: Shape, value: Any) -> bool:
    """Return whether the input of this shape can show the value without changing it."""
    if value is MISSING or (value is None and shape.is_nullable):
        return True
    if shape.kind == "choice":
        return value is None or isinstance(value, str | int | float)
    if shape.kind in ("text", "secret"):
        return isinstance(value, str) and not _NO_INPUT_KEEPS.search(value)
    if isinstance(
        value, str
    ):  # it stays as it was typed, wrong as it may be; a number in quotes is shown as JSON
        keeps = not _NO_INPUT_KEEPS.search(value) and "\n" not in value
        return keeps and (shape.kind == "decimal" or not NUMBER.fullmatch(value.strip()))
    return isinstance(value, int | float) and not isinstance(value, bool)


def input_for(blank: Control, shape: Shape, value: Any) -> Control:
    """Return the control that shows a value. It must be one that `shows` allows."""
    if shape.kind == "choice":
        return _choice(blank, shape, value)
    if shape.kind == "secret":
        return replace(blank, kind="secret", type="password", text="")
    is_null = value is None
    text = "" if value is MISSING or is_null else value if isinstance(value, str) else dump(value)
    blank = replace(blank, text=text, is_null=is_null)
    if shape.kind != "text":
        return replace(blank, kind="number")
    return _text(blank, shape.about)


def _text(blank: Control, about: Mapping[str, Any]) -> Control:
    wanted, text = str(about.get("format", "")), blank.text
    if wanted == "date-time" and (not text or _is_moment(text)):
        found = _MOMENT.fullmatch(text)
        local, zone = (found[1], found[3] or "") if found else ("", "Z")
        return replace(blank, kind="moment", type=MOMENT, text=local, zone=zone)
    if wanted in ("date", "time"):
        may_be_picked = not text or (_is_date(text) if wanted == "date" else _TIME.fullmatch(text))
        return replace(blank, kind="text", type=wanted if may_be_picked else "text")
    longest = about.get("maxLength", LONG_TEXT + 1)
    is_long = not wanted and longest > LONG_TEXT
    if "\n" in text or is_long or about.get("x-multiline"):
        return replace(blank, kind="area")
    return replace(blank, kind="text", type="text")


def _is_date(text: str) -> bool:
    """Return whether the calendar has this day. A browser shows any other as empty, and sends nothing in its place."""
    try:
        return bool(_DATE.fullmatch(text)) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_moment(text: str) -> bool:
    found = _MOMENT.fullmatch(text)
    return found is not None and _is_date(found[2])


def _choice(blank: Control, shape: Shape, value: Any) -> Control:
    choices = [Choice(dump(one), _word(one)) for one in shape.options]
    if len(choices) == 1 and value is not MISSING and dump(value) == choices[0].sent:
        return replace(blank, kind="fixed", text=choices[0].sent, choices=tuple(choices))
    if shape.is_nullable:
        choices.append(Choice("null", "None (null)"))
    sent = "" if value is MISSING else dump(value)
    if sent and sent not in [one.sent for one in choices]:
        choices.append(Choice(sent, f"{_word(value)} (not allowed)"))
    if not blank.is_required:
        choices.append(Choice("", "Leave out"))
    kind = "radio" if len(shape.options) <= MOST_RADIOS else "select"
    return replace(blank, kind=kind, text=sent, choices=tuple(choices))


def _word(value: Any) -> str:
    if value is None:
        return "None (null)"
    if isinstance(value, bool):
        return "Yes" if value else "No"
    return value if isinstance(value, str) and value else dump(value)


def is_same(control: Control, typed: str, zone: str, *, is_null: bool) -> bool:
    """Return whether nothing was changed: a browser may send the same value in another spelling."""
    if control.may_be_null and is_null != control.is_null:
        return False
    if control.kind == "secret":
        return not typed
    if control.kind == "moment":
        is_blank = not typed and not control.text
        return is_blank or (_short(typed), zone.strip()) == (_short(control.text), control.zone)
    if control.type == "time":
        return _short(typed) == _short(control.text)
    return _lines(typed) == _lines(control.text)


def meant(control: Control, typed: str, zone: str, *, is_null: bool) -> Any:
    """Return the value of a changed input. Raises ValueError, which says what is wrong with the text."""
    typed = _lines(typed)
    has_text = bool(typed.strip())
    if control.may_be_null and is_null and not (has_text and control.is_null and typed != control.text):
        return None
    if control.kind in ("radio", "select") and typed not in [one.sent for one in control.choices]:
        raise ValueError("Choose one of these.")
    if control.kind in ("radio", "select", "json"):
        return _json(typed) if has_text else MISSING
    if not has_text and not (
        control.is_required and control.kind in ("text", "area") and control.type == "text"
    ):
        return MISSING
    if control.kind == "moment":
        return f"{typed}:00{zone.strip()}" if typed.count(":") == 1 else typed + zone.strip()
    if control.kind == "number" or (control.kind == "secret" and control.shape != "string"):
        return _number(typed.strip(), control.shape)
    return typed


def _number(typed: str, shape: str) -> Any:
    """Return a number, or what was typed if it is none; a decimal stays text, so that no digit is lost."""
    if not NUMBER.fullmatch(typed) or shape == "decimal":
        return typed
    for problem in read_text(typed, "params").problems:
        raise ValueError(problem.message)
    return parse(typed)


def _json(typed: str) -> Any:
    for one in read_text(typed, "params").problems:
        raise ValueError(f"line {one.line}, column {one.column}: {one.message}" if one.line else one.message)
    return parse(typed)


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _short(text: str) -> str:
    """Return a time without zeros at its end, as browsers may send it."""
    text = text.strip()
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.removesuffix(":00") if text.count(":") == 2 else text
