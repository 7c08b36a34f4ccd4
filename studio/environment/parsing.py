"""Read single environment variables."""

from __future__ import annotations

from collections.abc import Mapping

MOST_DIGITS = 20  # Python reads no number of thousands of digits


class SettingError(Exception):
    """An environment variable has a value that cannot be used; the message names it and says what can.

    Correct the variable. docs/settings.md lists all of them.
    """


def words(variables: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in variables.get(name, "").split(",") if item.strip())


def flag(variables: Mapping[str, str], name: str) -> bool:
    text = variables.get(name, "").strip().lower()
    if text in ("", "0", "off", "false", "no"):
        return False
    if text in ("1", "on", "true", "yes"):
        return True
    raise SettingError(f'{name} is "{variables[name]}": it takes 1 or 0.')


def whole(variables: Mapping[str, str], name: str, *, default: int, lowest: int, highest: int) -> int:
    text = variables.get(name) or str(default)
    is_number = text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
    if not is_number or not lowest <= int(text) <= highest:
        raise SettingError(f'{name} is "{text}": it takes a whole number from {lowest} to {highest}.')
    return int(text)
