"""The table of our settings."""

from __future__ import annotations

from engine.configuration import SETTINGS


def settings() -> str:
    """List the keys of REPRISE."""
    lines = ["| `REPRISE[…]` | variable | default | meaning |", "| --- | --- | --- | --- |"]
    for one in SETTINGS.values():
        default = "none" if one.default in (None, []) else f"`{one.default}`"
        lines.append(f"| `{one.name}` | `{one.environment_variable}` | {default} | {one.about} |")
    return "\n".join(lines)
