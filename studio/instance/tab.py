"""What a tab of the instance page is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from studio.display.rendering import render_to_string
from studio.frame.pieces import Piece
from studio.instance.page import InstancePage

Context = Mapping[str, Any]  # what the templates of all pieces see: `d`, `instance`, `may_act` and more


@dataclass(frozen=True, slots=True)
class Drawn:
    """The live pieces of a tab. `order` and `follow` are those of a Drawing."""

    pieces: Mapping[str, Piece] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    follow: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab. Its template sees the page's context with `pieces`; `draw` renders those, also for the socket.

    `name` is its value of `tab` in the address, empty for the first tab. `takes` are the parameters that it knows; the
    context has them as `given`. `refuses` returns those with a value that it does not know. One that is not followed
    is drawn once, for the page.
    """

    name: str
    label: str
    template: str
    draw: Callable[[InstancePage, Context], Drawn]
    count: Callable[[InstancePage], int | None] = lambda page: None
    takes: tuple[str, ...] = ()
    refuses: Callable[[Mapping[str, str]], Collection[str]] = lambda given: ()
    is_followed: bool = True


def pieces_of(context: Context, *names: str) -> dict[str, Piece]:
    """Render the templates of these names in `studio/instance/pieces/`."""
    return {
        name: Piece(render_to_string(f"studio/instance/pieces/{name}.html", dict(context))) for name in names
    }
