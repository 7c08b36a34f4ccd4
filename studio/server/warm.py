"""Make a web process ready before its first request."""

from __future__ import annotations

import gc

from django.urls import get_resolver


def warm_up() -> None:
    """Load all views, and leave what is loaded by then out of garbage collections.

    A full collection looks at 160,000 objects, almost all of which stay as long as the process, and nothing is answered
    for the 60 to 80 ms that it takes.
    """
    get_resolver().url_patterns  # noqa: B018  imports them
    gc.collect()
    gc.freeze()
