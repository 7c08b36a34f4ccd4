"""The rows of groups. One that is as it was is not rendered again: only its times are, which go on."""

from __future__ import annotations

from functools import lru_cache

from django.utils.safestring import SafeString, mark_safe

from studio.display.rendering import render_to_string
from studio.display.times import with_times
from studio.frame.icons import icons_address
from studio.home.group import Group

KEPT = 500


def row(group: Group) -> SafeString:
    """Return the row of a group as HTML."""
    # A count that says "at least" equals one that does not.
    counts = (str(group.count), *(str(share.count) for share in group.shares))
    return mark_safe(with_times(_row(group, counts, icons_address())))  # noqa: S308  # a template's output


@lru_cache(maxsize=KEPT)
def _row(group: Group, counts: tuple[str, ...], icons: str) -> str:
    return render_to_string("studio/home/group.html", {"group": group})
