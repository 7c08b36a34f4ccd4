"""The arguments that most subcommands share: which instance, and who acts."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import dataclass

MOST = 1_000


@dataclass(frozen=True, slots=True)
class Address:
    """An instance in the form in which lists print it."""

    workflow: str
    id: str

    def __str__(self) -> str:
        return f"{self.workflow}/{self.id}"

    @classmethod
    def of(cls, text: str) -> Address:
        workflow, _, name = text.partition("/")
        if not (workflow and name):
            raise ArgumentTypeError(f'"{text}" is not an instance. Write WORKFLOW/ID, as the lists do.')
        return cls(workflow, name)


def take_instance(parser: ArgumentParser) -> None:
    parser.add_argument("instance", type=Address.of, metavar="WORKFLOW/ID", help="the instance")


def take_limit(parser: ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--limit", type=_limit, default=50, metavar="N", help=f"{what} at most (50; up to {MOST:,})"
    )


def take_origin(parser: ArgumentParser, *, needs_reason: bool = False) -> None:
    """Add the arguments for who acts and why. A destructive action requires a reason, as in the Studio."""
    take_name(parser)
    if needs_reason:
        parser.add_argument("--reason", required=True, type=said, help="why, for the audit trail; required")
    else:
        parser.add_argument("--reason", default="", help="why, for the audit trail")


def take_name(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--by",
        metavar="NAME",
        help="who acts: an account, or any name (default: cli: and the name of the system user)",
    )


def said(text: str) -> str:
    if not text.strip():
        raise ArgumentTypeError("This action requires a reason: add --reason.")
    return text


def natural(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text)):
        raise ArgumentTypeError(f'"{text}" is not a number from 1 on.')
    return int(text)


def _limit(text: str) -> int:
    limit = natural(text)
    if limit > MOST:
        raise ArgumentTypeError(f'"{text}" is more than {MOST:,}.')
    return limit
