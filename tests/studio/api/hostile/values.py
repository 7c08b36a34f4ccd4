"""Values that the API refuses or stores, and the entrances through which they come."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from engine.models import Instance
from tests.studio import factories

INSTANCES = "/workflows/sink/instances"


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


# What no value may be, by the rule that it breaks.
REFUSED: dict[str, tuple[bytes, str]] = {
    "NUL": (rb'"x\u0000y"', "nul_character"),
    "NUL in a key": (rb'{"\u0000":1}', "nul_character"),
    "a raw NUL": (b'"x\0y"', "not_json"),
    "a lone surrogate": (rb'["\ud800"]', "lone_surrogate"),
    "a lone surrogate in a key": (rb'{"\udc00":1}', "lone_surrogate"),
    "an encoded surrogate": (b'"\xed\xa0\x80"', "invalid_utf8"),
    "NaN": (b"NaN", "not_finite"),
    "-Infinity": (b"[-Infinity]", "not_finite"),
    "1e400": (b"1e400", "not_finite"),
    "1e999999999": (b"1e999999999", "not_finite"),
    "an integer of 65 bits": (b"9223372036854775808", "integer_too_large"),
    "an integer of 4,301 digits": (b"1" * 4_301, "integer_too_large"),
    "nesting of 100,000": (nested(100_000), "too_many_tokens"),
    "nesting of 1,000": (nested(1_000), "too_deep"),
    "100,001 lists": (b"[" + b"[]," * 100_000 + b"[]]", "too_many_tokens"),
    "duplicate keys": (b'{"a":1,"a":2}', "duplicate_key"),
    "a key of 257 characters": (b'{"%s":1}' % (b"k" * 257), "key_too_long"),
    "nothing": (b"", "not_json"),
    "single quotes": (b"'a'", "not_json"),
    "a comment": (b"/* */1", "not_json"),
    "a trailing comma": (b"[1,]", "not_json"),
    "two values": (b"1 2", "not_json"),
    "no UTF-8": (b'"\xff"', "invalid_utf8"),
    "a word of Python": (b"None", "not_json"),
    "an octal number": (b"01", "not_json"),
}
# Values that come back as this text.
STORED: dict[str, tuple[bytes, bytes]] = {
    "a large float": (b"1e16", b"1e+16"),
    "negative zero": (b"-0.0", b"-0.0"),
    "a long fraction": (b"0.1000000000000000055511151231257827", b"0.1"),
    "beyond JavaScript": (b"9007199254740993", b"9007199254740993"),
    "64 bits": (
        b"[9223372036854775807,-9223372036854775808]",
        b"[9223372036854775807,-9223372036854775808]",
    ),
    "order of keys": (b'{"zz":1,"b":2,"":3}', b'{"zz":1,"b":2,"":3}'),
    "names of JavaScript": (
        b'{"__proto__":{"a":1},"constructor":1,"a.b[0]$":1}',
        b'{"__proto__":{"a":1},"constructor":1,"a.b[0]$":1}',
    ),
    "null": (b"null", b"null"),
    "false": (b"false", b"false"),
    "no text": (b'""', b'""'),
    "an empty list": (b"[]", b"[]"),
    "an emoji": (rb'"\ud83d\ude00"', '"😀"'.encode()),
    "markup": (b'"</script><img src=x onerror=alert(1)>"', b'"</script><img src=x onerror=alert(1)>"'),
}


def entrances(asking: Callable[[], str]) -> dict[str, tuple[str, bytes]]:
    """Return every entrance of a value: an address, and a body around it."""
    Instance.objects.filter(id="one").exists() or factories.instance(workflow="sink", id="one")
    return {
        "start": (INSTANCES, b'{"params":%s}'),
        "batch": (f"{INSTANCES}/batch", b'{"items":[{"params":%s}]}'),
        "event": (f"{INSTANCES}/one/events", b'{"type":"go","payload":%s}'),
        "event by name": ("/events", b'{"workflow":"sink","id":"one","type":"go","payload":%s}'),
        "answer": (asking(), b'{"answer":%s}'),
    }


PLACES = {"batch": "items/0/params", "event": "payload", "event by name": "payload", "answer": "answer"}
NAMES = ("start", "batch", "event", "event by name", "answer")


def as_text(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
