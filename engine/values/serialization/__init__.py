"""The only reader and writer of JSON, for every value that comes from outside or is stored.

`read_json` reads texts from outside, `encode` and `decode` store plain values, and a `Codec` stores values of
any annotated type. What is accepted is read back equal, also in type, by every process and on every replay.
"""

from engine.values.json_type import JSON
from engine.values.serialization.annotations import awaited, return_annotation
from engine.values.serialization.codec import Codec, Stored, param_errors
from engine.values.serialization.local_types import is_local
from engine.values.serialization.parser import read_beginning, spans_of
from engine.values.serialization.reading import InvalidJSON, Unreadable, decode, decode_strict, read_json
from engine.values.serialization.rules import MAX_BYTES, MAX_DEPTH, MAX_KEY, MAX_TOKENS, show_path
from engine.values.serialization.schema import adapter_for
from engine.values.serialization.writing import encode

__all__ = [
    "JSON",
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_KEY",
    "MAX_TOKENS",
    "Codec",
    "InvalidJSON",
    "Stored",
    "Unreadable",
    "adapter_for",
    "awaited",
    "decode",
    "decode_strict",
    "encode",
    "is_local",
    "param_errors",
    "read_beginning",
    "read_json",
    "return_annotation",
    "show_path",
    "spans_of",
]
