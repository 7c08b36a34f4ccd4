"""The steps inside a folded step as rows of the table: what shows them, page by page, and hides them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from studio.instance.steps.line import Line, Toggle
from studio.instance.window import Window


def with_toggles(lines: Iterable[Line], window: Window) -> Iterator[Line]:
    """Yield the lines, each that has folded steps inside it with what shows those."""
    for line in lines:
        inside = line.nested
        yield (
            line
            if inside is None or not inside.begun
            else replace(line, toggle=_toggle(line, window, inside.pages))
        )


def _toggle(line: Line, window: Window, pages: int) -> Toggle:
    seq = line.step.seq
    page = min(window.rows.get(seq, 0), pages)

    def address(of: int) -> str:
        return f"?{line.place}{window.with_rows(seq, of)}#k-{seq}"

    return Toggle(
        page,
        pages,
        address(0 if page else 1),
        before=address(page - 1) if page > 1 else "",
        after=address(page + 1) if 0 < page < pages else "",
    )
