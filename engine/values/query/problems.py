"""Terms that cannot be understood."""

from __future__ import annotations


class NotATermError(ValueError):
    """A part of a search says nothing that can be searched for; the message tells what to write."""
