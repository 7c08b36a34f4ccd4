"""What a subcommand is."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.command.terminal import Terminal

Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Subcommand:
    """A name, what it takes, and the function that does it; an error of the engine's refuses it."""

    name: str
    help: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Terminal, Options], None]
