"""The text of a note: plain, with links for addresses and marks for mentions. Everything else in it is inert."""

from __future__ import annotations

import re
from collections.abc import Iterator

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from engine.models import Audit
from engine.status.sentences import bidi
from engine.values.mentions import mentions_in

# Marks of direction end an address: in one, they could show another than it leads to.
_ADDRESS = re.compile(
    r"https?://[^\s<>\"\x00-\x1f\u061c\u200b-\u200f\u202a-\u202e\u2066-\u2069]+", re.IGNORECASE
)
_AFTER = ".,;:!?'\"*_]}"  # what follows an address in a sentence


def note_text(entry: Audit) -> SafeString:
    """Render the text of a note."""
    return format_html_join("", "{}", ((part,) for part in _parts(entry.reason, frozenset(entry.mentions))))


def _parts(text: str, known: frozenset[str]) -> Iterator[str]:
    end = 0
    for found in _ADDRESS.finditer(text):
        yield from _words(text[end : found.start()], known)
        address = _trimmed(found[0])
        yield format_html('<a href="{0}" rel="noopener noreferrer" target="_blank">{0}</a>', address)
        end = found.start() + len(address)
    yield from _words(text[end:], known)


def _words(text: str, known: frozenset[str]) -> Iterator[str]:
    end = 0
    for mention in mentions_in(text):
        name = mention.meant(known)
        if name is not None:
            yield bidi.isolated(text[end : mention.start])
            yield format_html('<mark class="mention">@{}</mark>', bidi.isolated(name))
            end = mention.end(name)
    yield bidi.isolated(text[end:])


def _trimmed(address: str) -> str:
    """Leave out what belongs to the sentence: signs at the end, and a bracket that it does not open."""
    while address[-1] in _AFTER or (address[-1] == ")" and address.count(")") > address.count("(")):
        address = address[:-1]
    return address
