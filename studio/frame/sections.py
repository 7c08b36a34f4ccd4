"""Sections of a page that fail alone: one that cannot be read says so, and the others stay."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db import Error

from studio.frame.patience import TooSlowError, patience

log = logging.getLogger("studio.sections")

SECONDS = 3.0  # a section waits at most so long

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Section(Generic[T]):
    """What a section read, or the number under which its failure is logged."""

    name: str
    found: T | None = None
    failed: str = ""


def read(name: str, ask: Callable[[], T]) -> Section[T]:
    """Read a section within its time. What went wrong is logged under a number that the page shows."""
    try:
        with patience(SECONDS):
            return Section(name, ask())
    except (Error, TooSlowError) as error:
        number = uuid.uuid4().hex[:8]
        log.warning("Could not read %s (request %s): %s", name, number, error)
        return Section(name, failed=number)
