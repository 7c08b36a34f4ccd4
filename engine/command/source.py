"""Where the answers of subcommands come from."""

from __future__ import annotations

from abc import ABC, abstractmethod

from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.json_text import Document


class Source(ABC):
    """Reads and does what subcommands ask for."""

    def run(self, subcommand: Subcommand, terminal: Terminal, options: Options) -> int:
        """Print the answer, and return the exit code. Raises RepriseError if it is refused."""
        document = self.read(subcommand.words, options)
        terminal.answer(document, lambda: subcommand.lines(terminal, document, options))
        return subcommand.code(document)

    @abstractmethod
    def read(self, words: str, options: Options) -> Document:
        """Return the document that `--json` prints, with its times as datetimes."""
