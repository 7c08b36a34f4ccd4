"""The settings of Reprise: the dictionary REPRISE in Django's settings, with environment variables as defaults.

`REPRISE = {"SLOTS": 32}` and `REPRISE_SLOTS=32` mean the same; the dictionary wins. Every setting is declared here.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

DICTIONARY = "REPRISE"

DAY = 86_400
MOST_DIGITS = 20  # that a number may have
MOST_SHOWN = 100  # characters of a value


class ValueRefusedError(Exception):
    """A setting has a value that cannot be used; the message says what it takes."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: how its value is checked, what it is without a value, and the environment variable behind it."""

    name: str
    default: Any
    read: Callable[
        [Any], Any
    ]  # of a value in the dictionary, or of the text of a variable; raises ValueRefusedError
    about: str
    variable: str = ""

    @property
    def environment_variable(self) -> str:
        return self.variable or f"{DICTIONARY}_{self.name}"


def _words(given: Any) -> list[Any]:
    if isinstance(given, str):
        return [item.strip() for item in given.split(",") if item.strip()]
    if isinstance(given, list | tuple):
        return list(given)
    raise ValueRefusedError("a list of strings")


def _texts(given: Any) -> list[str]:
    found = _words(given)
    if not all(isinstance(one, str) for one in found):
        raise ValueRefusedError("a list of strings")
    return found


def _networks(given: Any) -> list[str]:
    found = _texts(given)
    try:
        return [str(ip_network(one, strict=False)) for one in found]
    except ValueError:
        raise ValueRefusedError("a list of addresses and networks, such as 10.0.0.5 or 10.0.0.0/8") from None


def _modules(given: Any) -> list[str]:
    found = _texts(given)
    if not all(part.isidentifier() for one in found for part in one.split(".")):
        raise ValueRefusedError("a list of names of modules, such as shop.orders")
    return found


def _folder(given: Any) -> Path:
    if not isinstance(given, str | PathLike) or "\0" in str(given):
        raise ValueRefusedError("the path of a folder")
    return Path(given)


def _origins(given: Any) -> list[str]:
    found = _texts(given)
    if not all(map(_is_origin, found or [""])):
        raise ValueRefusedError("a list of origins: scheme, host and maybe a port, as https://studio.example")
    return found


def _is_origin(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:  # brackets that are not closed; a port that is not a number
        return False
    is_whole = parts.scheme in ("http", "https") and parts.hostname and port != 0
    return bool(is_whole) and not (parts.path or parts.query or parts.fragment or re.search(r"[*@\s]", text))


def _whole(lowest: int, highest: int) -> Callable[[Any], int]:
    def read(given: Any) -> int:
        text = given.strip() if isinstance(given, str) else ""
        is_number = isinstance(given, int) and not isinstance(given, bool)
        is_digits = text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
        if not (is_number or is_digits) or not lowest <= (found := int(given)) <= highest:
            raise ValueRefusedError(f"a whole number from {lowest} to {highest}")
        return found

    return read


def _seconds(given: Any) -> float:
    try:
        found = 0.0 if isinstance(given, bool) else float(given)
    except (TypeError, ValueError, OverflowError):
        found = 0.0
    if not 1 <= found <= DAY:
        raise ValueRefusedError(f"a number of seconds from 1 to {DAY}")
    return found


SETTINGS: Mapping[str, Setting] = {
    one.name: one
    for one in (
        Setting("WORKERS", 2, _whole(1, 64), "processes that run workflows, in each cluster"),
        Setting("SLOTS", 64, _whole(1, 10_000), "instances that one of these processes drives at a time"),
        Setting("LEASE", 30.0, _seconds, "seconds for which a worker that says nothing keeps its instances"),
        Setting(
            "TASKS",
            None,
            _texts,
            "patterns, such as `shop.tasks.*`, of the functions that schedule rows may call",
        ),
        Setting(
            "MODULES", [], _modules, "modules that declare workflows, besides the `workflows.py` of each app"
        ),
        Setting(
            "HOME",
            Path(".reprise"),
            _folder,
            "the folder for what belongs to this machine, such as the demos' files",
        ),
        Setting(
            "SECRET_KEYS", [], _words, "keys that encrypt stored secrets, newest first; none means SECRET_KEY"
        ),
        Setting(
            "ORIGINS",
            None,
            _origins,
            "the origins whose pages may open the Studio's sockets; none means the host of the request, and "
            "CSRF_TRUSTED_ORIGINS",
            variable="REPRISE_ORIGIN",
        ),
        Setting(
            "TRUSTED_PROXIES", [], _networks, "addresses and networks of proxies whose X-Forwarded-For counts"
        ),
        Setting(
            "HEALTH_ADDRESSES",
            ["127.0.0.0/8", "::1/128"],
            _networks,
            "addresses and networks that see the details of /readyz; without a value, this machine",
        ),
        Setting(
            "MAX_BODY_BYTES",
            4 * 1024 * 1024,
            _whole(64 * 1024, 1024**3),
            "bytes in the largest request body: params of 1 MiB, in a form that writes each character as three",
        ),
        Setting("BODY_TIMEOUT_SECONDS", 30.0, _seconds, "seconds in which a request body must arrive"),
        Setting(
            "API_RATE",
            1_000,
            _whole(1, 10_000_000),
            "requests a minute that one token may send to the HTTP API",
        ),
        Setting(
            "API_CORS_ORIGINS",
            [],
            _origins,
            "the origins whose pages may call the HTTP API from a browser; none means no page",
        ),
        Setting(
            "API_AUTH",
            [],
            _texts,
            "dotted paths of the project's own authentication for the HTTP API, as django-ninja takes it",
        ),
    )
}


# Values from the command line, for this process and those that it forks.
_overrides: dict[str, Any] = {}


def override(name: str, value: Any, *, where: str) -> None:
    """Set a value that wins over the settings, from the option `where`. Raises ImproperlyConfigured."""
    _overrides[name] = _read(SETTINGS[name], value, where)


def setting(name: str) -> Any:
    """Return the value of a setting. Raises ImproperlyConfigured for one that cannot be used, and names the rule."""
    if name in _overrides:
        return _overrides[name]
    declared = SETTINGS[name]
    given = _dictionary()
    if name in given:
        if given[name] is None:
            return declared.default
        return _read(declared, given[name], f'{DICTIONARY}["{name}"]')
    text = os.environ.get(declared.environment_variable)
    return _read(declared, text, declared.environment_variable) if text else declared.default


def usable(name: str) -> Any:
    """Return the value of a setting, or its default if that cannot be used: for code that runs before the checks."""
    try:
        return setting(name)
    except ImproperlyConfigured:
        return SETTINGS[name].default


def problems() -> Iterator[str]:
    """Yield a sentence for every setting that is unknown or cannot be used."""
    try:
        given = _dictionary()
    except ImproperlyConfigured as error:
        yield str(error)
        return
    for name in given:
        if name not in SETTINGS:
            near = difflib.get_close_matches(str(name), SETTINGS, n=1)
            advice = f"Did you mean {near[0]}?" if near else f"There are {', '.join(SETTINGS)}."
            yield f"{DICTIONARY} has {name!r}, which is not a setting. {advice}"
    for name in SETTINGS:
        try:
            setting(name)
        except ImproperlyConfigured as error:
            yield str(error)


def _dictionary() -> Mapping[str, Any]:
    given = getattr(settings, DICTIONARY, None)
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        # Never the value: it may contain keys that encrypt.
        raise ImproperlyConfigured(f"{DICTIONARY} is a {type(given).__name__}: it takes a dictionary.")
    return given


def _read(declared: Setting, given: Any, where: str) -> Any:
    try:
        return declared.read(given)
    except ValueRefusedError as error:
        # Never the value of a key that encrypts.
        shown = "" if declared.name == "SECRET_KEYS" else f" is {_shown(given)}"
        raise ImproperlyConfigured(f"{where}{shown}: it takes {error}.") from None


def _shown(given: Any) -> str:
    try:
        text = repr(given)
    except ValueError:  # a number of thousands of digits
        return f"a large {type(given).__name__}"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
