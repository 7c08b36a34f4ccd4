"""What our commands have in common as programs: arguments that are text, and streams that others close."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TextIO

from django.core.management.base import BaseCommand, CommandError, OutputWrapper

FAILED = 1
INTERRUPTED = 130  # what a shell takes for Ctrl-C


class Program(BaseCommand):
    """A command that ends with an exit code and a sentence, not with a traceback, whatever it is joined to."""

    def run_from_argv(self, argv: list[str]) -> None:
        self._called_from_command_line = True  # already: how a parser complains hangs on it
        self._take_streams()
        _require_text(self.create_parser(argv[0], argv[1]), argv[2:])
        try:
            try:
                super().run_from_argv(argv)
            finally:
                self.stdout.flush()
        except CommandError as error:  # of the last flush
            self.stderr.write(str(error))
            sys.exit(error.returncode)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)

    def _take_streams(self) -> None:
        self.stdout = OutputWrapper(Stream(sys.stdout))  # type: ignore[arg-type]
        self.stderr = OutputWrapper(Stream(sys.stderr))  # type: ignore[arg-type]
        self.stderr.style_func = self.style.ERROR


class Stream:
    """A standard stream. What nobody reads any more is dropped, so that the exit code stays true."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream  # None if it was closed before we began
        # What its encoding lacks is written as an escape.
        with suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]

    def write(self, text: str) -> int:
        self._do(lambda stream: stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._do(lambda stream: stream.flush())

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def _do(self, act: Any) -> None:
        if self._stream is None:
            return
        try:
            act(self._stream)
        except BrokenPipeError:  # whoever reads has seen enough, as `head` has
            self._give_up(self._stream)
        except OSError as error:
            self._give_up(self._stream)
            raise CommandError(
                f"The answer cannot be written: {error.strerror}.", returncode=FAILED
            ) from None

    def _give_up(self, stream: TextIO) -> None:
        self._stream = None
        # Python writes out at the end what it holds back, and would fail again.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _require_text(parser: ArgumentParser, arguments: Sequence[str]) -> None:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            shown = argument.encode(errors="backslashreplace").decode()
            parser.error(f'"{shown}" is not text in {sys.getfilesystemencoding().upper()}.')
