"""The definition of a subcommand."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.command.terminal import Terminal

Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Subcommand:
    """A name, its arguments, and the function that runs it. An engine error means that it is refused."""

    name: str
    help: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Terminal, Options], None]
