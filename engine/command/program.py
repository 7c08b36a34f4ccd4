"""Behavior that all commands share: arguments must be text, and closed streams are tolerated."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TextIO

from django.core.management.base import BaseCommand, CommandError, OutputWrapper

FAILED = 1
INTERRUPTED = 130  # the exit code that shells use for Ctrl-C


class Program(BaseCommand):
    """A command that ends with an exit code and a sentence, never with a traceback, whatever its streams are."""

    def run_from_argv(self, argv: list[str]) -> None:
        self._called_from_command_line = (
            True  # already here, because the parser's error handling depends on it
        )
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
    """A standard stream. Output to a closed reader is dropped, so that the exit code stays correct."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream  # None if it was closed before the start
        # Characters outside its encoding are escaped.
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
        except BrokenPipeError:  # the reader has closed its end, as `head` does
            self._give_up(self._stream)
        except OSError as error:
            self._give_up(self._stream)
            raise CommandError(
                f"The answer cannot be written: {error.strerror}.", returncode=FAILED
            ) from None

    def _give_up(self, stream: TextIO) -> None:
        self._stream = None
        # Python flushes its buffer at exit, and would fail again.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _require_text(parser: ArgumentParser, arguments: Sequence[str]) -> None:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            shown = argument.encode(errors="backslashreplace").decode()
            parser.error(f'"{shown}" is not text in {sys.getfilesystemencoding().upper()}.')
