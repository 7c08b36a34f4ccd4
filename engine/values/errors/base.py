"""What all errors of the engine have in common."""

import zlib
from types import FunctionType
from typing import Any


class RepriseError(Exception):
    """Every error that the engine raises on purpose is one of these.

    Catch a subclass where you can handle the situation. Catch this class only to report whatever went wrong.
    """

    field = ""
    """The argument that is wrong, by its name in the HTTP API, such as `params` or `dedup_key`; empty if it is none."""

    def __hash__(self) -> int:
        """Hash by the message, which a replay repeats, and not by the address: handlers may put errors into sets."""
        said = self.args[0] if self.args else ""
        return zlib.crc32(said.encode(errors="surrogatepass")) if type(said) is str else super().__hash__()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy without `__init__`, which takes other arguments than the message it makes of them."""
        return _remade, (type(self), self.args), vars(self)


def _remade(kind: type[RepriseError], args: tuple[object, ...]) -> RepriseError:
    return kind.__new__(kind, *args)


def shown(value: object) -> str:
    """Show a wrong value in a message: short, and whatever its `repr` does."""
    if isinstance(value, FunctionType):
        return f"the function {value.__qualname__.rpartition('<locals>.')[2][:100]}"
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - user code: a repr that raises, or an integer too long to print
        return f"(a value of type {type(value).__qualname__})"
    text = f'"{value}"' if type(value) is str and text[1:-1] == value else text
    return text if len(text) <= 100 else f"{text[:100]}…"
