"""Say in a sentence why Reprise cannot start, where the fault lies in what people have set or in their apps."""

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
from studio.environment.parsing import SettingError

SETTINGS = "DJANGO_SETTINGS_MODULE"


@contextmanager
def plain_refusals() -> Iterator[None]:
    """End the process with such a sentence, instead of a traceback, if the block fails to set Django up."""
    try:
        yield
    except Exception as error:
        if "--traceback" in sys.argv or (why := reason(error)) is None:
            raise
        sys.exit(f"Reprise cannot start. {why}")


def reason(error: Exception) -> str | None:
    """Say what is wrong; None for what is not the settings' fault, nor that of an app that they name."""
    if isinstance(error, ImproperlyConfigured) and isinstance(error.__cause__, SettingError):
        return str(error)
    if apps.ready:
        return None
    module = os.environ.get(SETTINGS, "")
    if isinstance(error, ModuleNotFoundError) and error.name == module:
        return f"{SETTINGS} is {module}, and there is no such module in {Path.cwd()} or on PYTHONPATH."
    return _blame(error)


def _blame(error: Exception) -> str | None:
    """Name the app in whose code it happened, and the innermost place there."""
    said = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
    for name in app_names(os.environ):
        place = next((f" ({file}, line {line})" for file, line in _places(error) if _is_in(file, name)), None)
        # Django asks for a module of it, or a class, that is not there: nothing of its own has run.
        is_missing = isinstance(error, (ImportError, ImproperlyConfigured)) and name.partition(".")[0] in said
        if place is not None or is_missing:
            return (
                f"REPRISE_APPS names {name}, which cannot be loaded. {said}{place or ''}\n"
                "The whole traceback: python manage.py check --traceback"
            )
    return None


def _places(error: Exception) -> list[tuple[str, int]]:
    """Return where it happened, the innermost place first."""
    found = [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        found.append((error.filename or "", error.lineno or 0))
    return found[::-1]


def _is_in(file: str, app: str) -> bool:
    spec = find_spec(app.partition(".")[0])
    places = (spec.submodule_search_locations or [spec.origin or ""]) if spec else []
    return any(Path(file).is_relative_to(place) for place in places)
