"""What failures have in common: the same error at the same place, whatever the numbers, ids and texts in its message.

Two failures have the same fingerprint if they agree in workflow, step, phase, the error's class, its message without
what differs from one to the next, and the innermost frame of the project's own code. It is computed from the record of
the error and not from the exception: a replay in another process, which has the record only, finds the same one.

Messages come from anywhere. They are cut before any pattern is looked for, and each pattern takes linear time.
"""

from __future__ import annotations

import hashlib
import re
import sys
import sysconfig
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from engine.values.error_record import ErrorRecord, storable

MAX_MESSAGE = 300
MAX_SAMPLE = 4_000
MAX_FRAME = 300
LOST = "WorkerLostError"
LOST_MESSAGE = "The worker was lost."

_READ = 2_000  # characters of a message
# Controls, marks of direction, invisible characters, lone surrogates: they would only hide what a message says.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
_PATTERNS = (
    (
        re.compile(r"""(?<!\w)(?:"[^"]*"|'[^']*'(?!\w)|`[^`]*`|“[^”]{0,400}”|„[^“]{0,400}“|«[^»]{0,400}»)"""),
        "‹text›",
    ),
    (
        re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{0,20}://)(?:[^\s/?#@]{0,200}@)?([^\s/?#,;)\]}>]+)[^\s)\]}>]*"),
        r"\1\2/‹path›",
    ),
    (re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"), "‹email›"),
    (
        re.compile(
            r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)\b)?"
            r"|\d\d?:\d\d:\d\d(?:[.,]\d{1,9})?"
        ),
        "‹time›",
    ),
    (
        re.compile(r"(?<!\w)[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?!\w)|\b0x[0-9a-fA-F]+"),
        "‹id›",
    ),
)
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_HEX = re.compile(r"[0-9a-fA-F]{8,}")
_ID_LENGTH = 16  # a word so long with digits and letters is an id

_FRAME = re.compile(r'^  File "([^"\n]+)", line \d+, in ([^\n]+)$', re.MULTILINE)
_HEADER = "Traceback (most recent call last):\n"
_ENGINE = str(Path(__file__).parents[1])
_LIBRARY = tuple({sysconfig.get_path(name) + "/" for name in ("stdlib", "platstdlib")})
_PACKAGES = ("/site-packages/", "/dist-packages/")


@dataclass(frozen=True, slots=True)
class Failed:
    """What the failures of a group have in common, and the message of one of them."""

    fingerprint: str
    kin: str
    workflow: str
    step: str
    phase: str
    type: str
    message: str
    sample: str
    frame: str
    of_attempts: bool


def failed(
    error: ErrorRecord,
    *,
    workflow: str,
    step: str = "",
    phase: str = "do",
    is_sensitive: bool = False,
    of_attempts: bool = True,
) -> Failed:
    """Return the group of a failure. Of a sensitive step's error only the class and the frame are used."""
    if error.type == LOST:
        message = sample = LOST_MESSAGE
        frame = ""
    else:
        message = "" if is_sensitive else normalised(error.message)
        sample = "" if is_sensitive else storable(error.message[:MAX_SAMPLE])
        frame = own_frame(error)
    kind = storable(error.type[:256])
    shared = (step, phase, kind, message, frame)
    return Failed(
        _digits(workflow, *shared),
        _digits(*shared),
        workflow,
        step,
        phase,
        kind,
        message,
        sample,
        frame,
        of_attempts,
    )


def normalised(message: str) -> str:
    """Return a message without what differs from failure to failure, on one line of at most 300 characters."""
    text = _INVISIBLE.sub("", message[:_READ])
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    text = " ".join(_WORD.sub(_without_ids, text).split())
    text = _NUMBER.sub("‹n›", text)
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 1]}…"


def own_frame(error: ErrorRecord) -> str:
    """Return file and function of the innermost frame in the project's own code, without its line; "" if there is none.

    Causes come before the exception itself in a traceback, and are not looked at.
    """
    text = error.traceback
    if error.message:
        text = text.rpartition(f"\n{error.type}: {error.message}")[0] or text
    text = text.rpartition(_HEADER)[2]
    for file, function in reversed(_FRAME.findall(text)):
        place = _place(file)
        if place:
            return storable(f"{place}, {function}"[:MAX_FRAME])
    return ""


@lru_cache(maxsize=1024)
def _place(file: str) -> str:
    """Return the path of a file below the project's root; "" if it is not the project's."""
    if file.startswith(("<", f"{_ENGINE}/", *_LIBRARY)) or any(one in file for one in _PACKAGES):
        return ""
    roots = [f"{root.rstrip('/')}/" for root in (*sys.path, str(Path.cwd())) if root]
    within = [root for root in roots if file.startswith(root)]
    return file[len(max(within, key=len)) :] if within else "/".join(file.split("/")[-3:])


def _without_ids(found: re.Match[str]) -> str:
    word = found[0]
    if word.isdecimal() or not any(char.isdecimal() for char in word):
        return word
    return "‹id›" if len(word) >= _ID_LENGTH or _HEX.fullmatch(word) else word


def _digits(*parts: str) -> str:
    text = "\x1f".join(parts)
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]
