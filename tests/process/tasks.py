"""Ordinary tasks that a cluster runs for the tests."""

import os
import time
from pathlib import Path


def note(path: str, text: str) -> None:
    """Leave a line behind."""
    with Path(path).open("a") as file:
        file.write(f"{text}\n")


def note_pid(path: str) -> None:
    note(path, str(os.getpid()))


def note_and_wait(path: str, seconds: float) -> None:
    note(path, f"begun {os.getpid()}")
    time.sleep(seconds)
    note(path, "ended")


def weigh(path: str, parcel: str) -> str:
    """Return what was given, so that it travels both ways."""
    note(path, str(len(parcel)))
    return parcel


def unpicklable() -> object:
    return lambda: None
