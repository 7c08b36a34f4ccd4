"""All subcommands, in the order of `--help`. Those in a group follow the group's name."""

from __future__ import annotations

from engine.command.bulk_jobs import BULK
from engine.command.decisions import FAIL_STEP, SKIP_STEP
from engine.command.errors import ERRORS
from engine.command.events import ANSWER, EVENTS
from engine.command.health import HEALTH
from engine.command.index import INDEX
from engine.command.list import LIST
from engine.command.note import NOTE
from engine.command.pauses import WORKFLOWS
from engine.command.replay import REPLAY
from engine.command.restart import RESTART, RETRY_STEP
from engine.command.schedules import SCHEDULES
from engine.command.show import SHOW
from engine.command.start import START
from engine.command.steering import (
    ACCEPT_CODE,
    DELETE,
    PAUSE,
    RESUME,
    RETRY_NOW,
    RETRY_ROLLBACK,
    TERMINATE,
    WAKE_NOW,
)
from engine.command.subcommand import Subcommand
from engine.command.workers import WORKERS

SUBCOMMANDS: tuple[Subcommand, ...] = (
    LIST,
    START,
    SHOW,
    PAUSE,
    RESUME,
    TERMINATE,
    RESTART,
    RETRY_STEP,
    FAIL_STEP,
    SKIP_STEP,
    DELETE,
    RETRY_NOW,
    WAKE_NOW,
    RETRY_ROLLBACK,
    ACCEPT_CODE,
    ANSWER,
    NOTE,
    REPLAY,
    INDEX,
    HEALTH,
)
GROUPS: dict[
    str, tuple[str, tuple[Subcommand, ...], Subcommand | None]
] = {  # the third item is the default, without a further word
    "bulk": ("act on many instances in the background", BULK, BULK[0]),
    "errors": ("list or decide about errors, in groups of the same kind", ERRORS, ERRORS[0]),
    "events": ("list or send the events of an instance", EVENTS, None),
    "schedules": ("list or control schedules", SCHEDULES, SCHEDULES[0]),
    "workers": ("list workers, drain or resume them", WORKERS, WORKERS[0]),
    "workflows": ("list workflows, pause or resume them", WORKFLOWS, WORKFLOWS[0]),
}
