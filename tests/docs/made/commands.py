"""The page of the command line: each command as its parser describes it."""

from __future__ import annotations

from argparse import Action, ArgumentParser, _SubParsersAction
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from django.core.management import get_commands, load_command_class

from engine.version import VERSION
from studio.command import init, main, run
from tests.docs.made.text import cell, table, wrapped

# What every command of Django takes.
_OF_DJANGO = (
    *("help", "version", "verbosity", "settings", "pythonpath", "traceback"),
    *("no_color", "force_color", "skip_checks"),
)


def of_ours() -> list[str]:
    """Return the names of our management commands."""
    return sorted(name for name, app in get_commands().items() if app in ("engine", "studio"))


def parser_of(name: str) -> ArgumentParser:
    app = get_commands()[name]
    assert isinstance(app, str)
    return load_command_class(app, name).create_parser("manage.py", name)


def command(name: str) -> str:
    """Show a management command, and its subcommands."""
    parser = parser_of(name)
    return "\n\n".join(_shown(f"manage.py {name}", parser, level="###"))


def reprise() -> str:
    """Show the installed command: its own help, and the commands that have options."""
    said = main.HELP.replace(f", {VERSION}", "")  # or the page would change with each version
    parts = [f"```\n{said.rstrip()}\n```"]
    for parser in (run.make_parser(), init.make_parser()):
        parts += _shown(parser.prog, parser, level="###")
    return "\n\n".join(parts)


def subparsers_of(parser: ArgumentParser) -> Mapping[str, ArgumentParser]:
    found = [one for one in parser._actions if isinstance(one, _SubParsersAction)]
    return found[0].choices if found else {}


def _shown(called: str, parser: ArgumentParser, *, level: str) -> Iterator[str]:
    yield f"{level} `{called}`"
    yield f"```\n{_usage(called, parser)}\n```"
    if parser.description:
        yield wrapped(parser.description.replace("*", "\\*"))
    rows = [(_names(one), _meaning(one)) for one in arguments_of(parser)]
    if rows:
        yield table(("argument", "meaning"), rows)
    for name, inner in subparsers_of(parser).items():
        yield from _shown(f"{called} {name}", inner, level="####" if level == "###" else "#####")


def arguments_of(parser: ArgumentParser) -> list[Action]:
    """Return the arguments that are a command's own."""
    return [
        one
        for one in parser._actions
        if one.dest not in _OF_DJANGO and not isinstance(one, _SubParsersAction)
    ]


def _usage(called: str, parser: ArgumentParser) -> str:
    words = [called, *(_placed(one) for one in arguments_of(parser))]
    inner = [one for one in parser._actions if isinstance(one, _SubParsersAction)]
    words += ["SUBCOMMAND" if one.required else "[SUBCOMMAND]" for one in inner]
    kept_together = [word.replace(" ", "\N{NO-BREAK SPACE}") for word in words[1:]]
    return wrapped(" ".join([words[0], *kept_together]), indent="    ").replace("\N{NO-BREAK SPACE}", " ")


def _placed(one: Action) -> str:
    """Return an argument for the usage; long lists of choices are in the table."""
    value = one.dest.upper() if len(list(one.choices or ())) > 3 else _value(one)
    if not one.option_strings:
        return {"?": f"[{value}]", "*": f"[{value} …]", "+": f"{value} …"}.get(str(one.nargs), value)
    text = f"{one.option_strings[-1]}{f' {value}' if value else ''}"
    return text if one.required else f"[{text}]"


def _value(one: Action) -> str:
    if one.nargs == 0:
        return ""
    if one.choices is not None:
        return f"{{{','.join(map(str, one.choices))}}}"
    return str(one.metavar or one.dest.upper())


def _names(one: Action) -> str:
    if not one.option_strings:
        return f"`{_value(one)}`"
    value = _value(one)
    return ", ".join(f"`{name}{f' {value}' if value else ''}`" for name in one.option_strings)


def _meaning(one: Action) -> str:
    text = (one.help or "").replace("%(default)s", str(one.default)).replace("%%", "%")
    return cell(text.replace("<", "\\<"))


SECTIONS: Mapping[str, Callable[[], str]] = {
    "command:reprise": reprise,
    **{
        f"command:{name}": partial(command, name)
        for name in ("workflow", "workers", "verify", "lintworkflows", "secretkeys", "studio")
    },
}
