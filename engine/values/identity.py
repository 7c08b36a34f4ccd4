"""Names, ids and tags, and the identities derived from them."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import textwrap
import threading
import time
import uuid
import zlib
from collections.abc import Iterable
from datetime import UTC, datetime
from random import Random
from typing import Literal, NamedTuple

from engine.values.errors import InvalidNameError, LimitError

MAX_INSTANCE_ID, MAX_WORKFLOW_NAME, MAX_STEP_NAME, MAX_EVENT_TYPE = 100, 64, 256, 100
MAX_TAG, MAX_DEDUP_KEY, MAX_SCHEDULE_NAME = 100, 255, 100
MAX_TAGS = 50
RESERVED_PREFIX = "reprise:"
REQUEST_TYPE = f"{RESERVED_PREFIX}request:"
COMPENSATE = f"{RESERVED_PREFIX}compensate"  # the name of the steps that start compensations of branches
OLD_MILESTONE = (
    "progress"  # the name of every milestone recorded before milestones were named after their message
)
LONGEST_MILESTONE = 200

_SLUG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
# Control characters, and lone surrogates, which a text column cannot store.
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")

TOP = 0  # the parent of steps called by the handler itself


class StepIdentity(NamedTuple):
    """What identifies a step across replays; fixed synchronously when it is called."""

    parent: int
    kind: str
    name: str
    count: int  # type: ignore[assignment]  # the contract's word, though tuples have a method of that name


class Counter:
    """Assign the occurrence numbers, from 1, of one replay cycle."""

    def __init__(self) -> None:
        self._counts: dict[tuple[int, str, str], int] = {}

    def take(self, kind: str, name: str, *, parent: int = TOP, once: bool = False) -> StepIdentity:
        """Return the identity of the next occurrence; with `once`, always that of the first."""
        key = (parent, kind, name)
        count = 1 if once else self._counts.get(key, 0) + 1
        self._counts[key] = max(count, self._counts.get(key, 0))
        return StepIdentity(parent, kind, name, count)


def check_instance_id(value: object) -> str:
    return _slug(value, "an instance's id", MAX_INSTANCE_ID)


def check_workflow_name(value: object) -> str:
    return _slug(value, "a workflow's name", MAX_WORKFLOW_NAME)


def check_step_name(value: object) -> str:
    return _unreserved(_text(value, "a step's name", MAX_STEP_NAME), "a step's name")


def check_event_type(value: object) -> str:
    return _unreserved(_text(value, "an event's type", MAX_EVENT_TYPE), "an event's type")


def milestone_name(message: str) -> str:
    """Return the name of the milestone with this message: the message itself, if it is a valid name."""
    name = _UNFIT.sub("\ufffd", " ".join(message.split()))
    if name == message and 0 < len(name) <= LONGEST_MILESTONE and name != OLD_MILESTONE:
        return name
    # The digest distinguishes messages that differ only in what was cut off or replaced.
    return f"{name[:LONGEST_MILESTONE]} ({_digest('milestone', message)[:8]})".strip()


def request_type(generation: int, seq: int) -> str:
    """Return the type of the one event that answers a request: users can neither send it nor wait for it."""
    return f"{REQUEST_TYPE}{generation}:{seq}"


def check_tag(value: object) -> str:
    return _text(value, "a tag", MAX_TAG)


def check_tags(tags: Iterable[str] | None) -> list[str]:
    """Return each tag once, in the order given. Raises InvalidNameError or LimitError."""
    if isinstance(tags, str):
        raise InvalidNameError("a list of tags", tags, "It must be a list of strings.")
    checked = list(dict.fromkeys(check_tag(tag) for tag in tags or ()))
    if len(checked) > MAX_TAGS:
        raise LimitError("number of tags", len(checked), MAX_TAGS)
    return checked


def check_schedule_name(value: object) -> str:
    return _text(value, "a schedule's name", MAX_SCHEDULE_NAME)


def check_dedup_key(value: object) -> str:
    return _unreserved(_text(value, "an event's dedup key", MAX_DEDUP_KEY), "an event's dedup key")


def idempotency_key(
    workflow: str,
    instance_id: str,
    generation: int,
    path: tuple[StepIdentity, ...] | str,
    phase: Literal["do", "rollback"] = "do",
) -> str:
    """Return a key that is unique to a step, and the same on every attempt and in every worker.

    The path leads from the top to the step. The step's rollback has a different key, and so does each generation.
    """
    steps = path if isinstance(path, str) else [step[1:] for step in path]  # a parent's number may be a row's
    return _digest("idempotency", workflow, instance_id, generation, steps, phase)


def child_id(
    key: int,
    workflow: str,
    instance_id: str,
    generation: int,
    path: tuple[StepIdentity, ...],
    *,
    secret: str | bytes,
) -> str:
    """Return the id of the child that this step starts: the same on every replay, and unique.

    It begins with the parent's id. The digest includes the parent's key, so that a parent that was deleted and started
    again with the same id does not find the children of the first one. It includes a secret of the project, because
    pages show everything else: someone who could compute the id could start an instance with it before the parent does.
    """
    steps = [step[1:] for step in path]
    digest = _secret_digest(secret, "child", key, workflow, instance_id, generation, steps)
    return f"{instance_id[:60]}-{digest}"


def scheduled_id(workflow: str, schedule: str, planned: datetime, *, secret: str | bytes) -> str:
    """Return the id of the instance that a schedule starts for a planned moment: the same if two start it.

    It shows the moment in UTC. It includes the secret for the same reason as the id of a child.
    """
    digest = _secret_digest(secret, "schedule", workflow, schedule, planned.timestamp())
    return f"{planned.astimezone(UTC):%Y%m%dT%H%M%SZ}-{digest[:16]}"


def fingerprint(source: str) -> str:
    """Return the fingerprint of a handler's source; common indentation and trailing blanks do not count."""
    lines = (line.rstrip() for line in textwrap.dedent(source.expandtabs()).splitlines())
    return _digest("fingerprint", *(line for line in lines if line))


def seed(workflow: str, instance_id: str, generation: int, path: tuple[StepIdentity, ...] = ()) -> str:
    """Return the seed of a handler's random values; with the path of a step, that of its body."""
    inside = [[step[1:] for step in path]] if path else []
    return _digest("seed", workflow, instance_id, generation, *inside)


def seeded_random(
    workflow: str, instance_id: str, generation: int, path: tuple[StepIdentity, ...] = ()
) -> Random:
    """Return the generator behind `step.random`, the same at the start of every replay."""
    return Random(int(seed(workflow, instance_id, generation, path), 16))  # noqa: S311 - repeatable on purpose


def seeded_uuid4(seed: str, n: int) -> uuid.UUID:
    """Return the n-th UUID of a seed."""
    return uuid.UUID(hex=_digest("uuid", seed, n), version=4)


def stable_hash(*parts: str) -> int:
    """Return a hash that is the same in every process. Python's own hash of a string is not."""
    return zlib.crc32("\0".join(parts).encode(errors="surrogatepass"))


_clock_lock = threading.Lock()
_last_tick = 0


def new_instance_id() -> str:
    """Return a UUIDv7: ids sort by time, and those of one process by order of creation."""
    tick = _next_tick()
    value = (tick >> 12) << 80 | 0x7 << 76 | (tick & 0xFFF) << 64 | 0b10 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=value))


def _next_tick() -> int:
    """Count milliseconds, with 12 bits of fraction; a clock that is set back does not break the order."""
    global _last_tick
    now = time.time_ns()
    tick = (now // 1_000_000) << 12 | (now % 1_000_000 << 12) // 1_000_000
    with _clock_lock:
        _last_tick = max(tick, _last_tick + 1)
        return _last_tick


def _slug(value: object, what: str, limit: int) -> str:
    # fullmatch: `$` would take a newline at the end.
    if not isinstance(value, str) or len(value) > limit or not _SLUG.fullmatch(value):
        rule = (
            f"It needs 1 to {limit} characters of A-Z, a-z, 0-9, _ and -, and must not begin with a hyphen."
        )
        raise InvalidNameError(what, value, rule)
    return value


def _text(value: object, what: str, limit: int) -> str:
    if not isinstance(value, str):
        raise InvalidNameError(what, value, "It must be a string.")
    if not value.strip() or len(value) > limit:
        raise InvalidNameError(
            what, value, f"It needs 1 to {limit} characters, not all of them blank; it has {len(value):,}."
        )
    if _UNFIT.search(value):
        raise InvalidNameError(what, value, "It must not contain control characters or lone surrogates.")
    return value


def _unreserved(name: str, what: str) -> str:
    if name.startswith(RESERVED_PREFIX):
        raise InvalidNameError(what, name, f'The prefix "{RESERVED_PREFIX}" is reserved for the engine.')
    return name


def _digest(*parts: object) -> str:
    # JSON keeps the parts apart: ("a", "b-c") and ("a-b", "c") must differ.
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _secret_digest(secret: str | bytes, *parts: object) -> str:
    key = secret.encode() if isinstance(secret, str) else secret
    return hmac.new(key, json.dumps(parts).encode(), hashlib.sha256).hexdigest()[:32]
