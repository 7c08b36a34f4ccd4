"""Explain in one sentence why Reprise cannot start, if the cause is in the settings or in a user's app."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured

from studio.environment.apps import app_names
from studio.environment.folder import OWN_FILE, OWN_MODULE, VARIABLE, module_names, program
from studio.environment.parsing import SettingError

SETTINGS = "DJANGO_SETTINGS_MODULE"


@contextmanager
def plain_refusals() -> Iterator[None]:
    """Exit with such a sentence instead of a traceback if the block fails to set up Django."""
    try:
        yield
    except Exception as error:
        if "--traceback" in sys.argv or (why := reason(error)) is None:
            raise
        sys.exit(f"Reprise cannot start. {why}")


def reason(error: BaseException) -> str | None:
    """Return what is wrong, or None if neither the settings nor the code of a user caused the error."""
    if isinstance(error, ImproperlyConfigured) and isinstance(error.__cause__, SettingError):
        return str(error)
    if apps.ready:
        return None
    module = os.environ.get(SETTINGS, "")
    if isinstance(error, ModuleNotFoundError) and error.name == module:
        return f"{SETTINGS} is {module}, and there is no such module in {Path.cwd()} or on PYTHONPATH."
    return _blame(error)


def _blame(error: BaseException) -> str | None:
    """Return which app or module failed, and the innermost place in its code."""
    said = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
    for name, what in _loaded():
        place = next((f" ({file}, line {line})" for file, line in _places(error) if _is_in(file, name)), None)
        # A module or class is missing: no code of the user's has run.
        is_missing = isinstance(error, (ImportError, ImproperlyConfigured)) and name.partition(".")[0] in said
        if place is not None or is_missing:
            return (
                f"{what} cannot be loaded. {said}{place or ''}\n"
                f"The whole traceback: {program()} check --traceback"
            )
    return None


def _loaded() -> Iterator[tuple[str, str]]:
    """Yield what the settings load of the user's code, and how a sentence about it begins."""
    for name in app_names(os.environ):
        yield name, f"REPRISE_APPS names {name}, which"
    for name in module_names(os.environ, Path.cwd()):
        yield name, OWN_FILE if name == OWN_MODULE else f"{VARIABLE} names {name}, which"


def _places(error: BaseException) -> list[tuple[str, int]]:
    """Return the places in the traceback, innermost first."""
    found = [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        found.append((error.filename or "", error.lineno or 0))
    return found[::-1]


def _is_in(file: str, name: str) -> bool:
    if name == OWN_MODULE:  # with what else is in its folder
        return Path(file).is_relative_to(Path.cwd()) and "site-packages" not in Path(file).parts
    spec = find_spec(name.partition(".")[0])
    places = (spec.submodule_search_locations or [spec.origin or ""]) if spec else []
    return any(Path(file).is_relative_to(place) for place in places)
