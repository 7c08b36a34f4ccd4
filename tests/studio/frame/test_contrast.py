"""Text in the one blue, and on it, can be read in both themes."""

import re
from pathlib import Path

import pytest

FRAME = Path(__file__).parents[3] / "static/studio/frame"
TOKENS = (FRAME / "tokens.css").read_text()
LEAST = 4.5  # WCAG 1.4.3, for text of common size
LIGHT, DARK = 0, 1


def _colour(name: str, theme: int) -> str:
    found = re.search(rf"--{name}: ([^;]+);", TOKENS)
    assert found is not None, name
    colours = re.findall(r"#[0-9a-f]{6}", found[1])
    return str(colours[theme if len(colours) > 1 else 0])


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("text", "ground"),
    [("accent-text", "accent"), ("accent-text", "accent-hover"), ("link", "surface"), ("link", "canvas")],
)
def test_blue_has_enough_contrast(text: str, ground: str, theme: int) -> None:
    darker, lighter = sorted(_luminance(_colour(name, theme)) for name in (text, ground))
    assert (lighter + 0.05) / (darker + 0.05) >= LEAST


def test_accent_is_never_the_colour_of_a_label() -> None:
    """In the dark theme the accent is made for white text on it; as text on the surface it is too dark."""
    assert re.findall(r".*[\s{;]color: var\(--accent\).*", (FRAME / "base.css").read_text()) == [
        line
        for line in (FRAME / "base.css").read_text().splitlines()
        if "svg" in line and "color: var(--accent)" in line
    ]
