"""The help for keys."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings
from django.template.loader import render_to_string

STUDIO = Path(settings.BASE_DIR) / "static/studio"
FILES = (
    "frame/keys.js",
    "instances/ticks.js",
    "instance/menu.js",
    "instance/panes.js",
    "instance/pane-keys.js",
)
ARROWS = {"ArrowRight": "→", "ArrowLeft": "←"}
SCRIPT = "".join((STUDIO / name).read_text() for name in FILES)
RAIL = Path(settings.BASE_DIR) / "templates/studio/frame/rail.html"


def test_the_help_lists_every_key_that_exists() -> None:
    listed = set(
        re.findall(
            r"<kbd>([^<]+)</kbd>",
            render_to_string("studio/jump/shortcut-list.html", {"may_administer": True}),
        )
    )
    handled = {ARROWS.get(key, key) for key in re.findall(r'key === "([^"]+)"', SCRIPT)} - {"Escape"} | {
        "[",
        "]",
    }
    follow_g = set(re.findall(r'data-go="(\w)"', RAIL.read_text()))
    assert {"?", "/", "g"} < handled
    assert follow_g == {"h", "w", "i", "e", "a", "t", "s", "k", "o", "b", "j", "c"}
    # Esc closes a dialog by itself, Ctrl+Enter is the editor's, Shift goes with x, and the arrows are a chart's.
    assert listed == handled | follow_g | {"Esc", "Ctrl", "Shift", "←", "→"}
