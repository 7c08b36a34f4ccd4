"""What is found of groups of failures."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failures with one fingerprint: the same error at the same place in one workflow."""

    fingerprint: str
    """What identifies it: 16 hex digits."""
    kin: str
    """The same digits in every workflow that fails with this error in a step of this name."""
    workflow: str
    step: str
    """The name of the step; empty if the handler itself failed."""
    phase: str
    """do or rollback."""
    type: str
    """The name of the error's class."""
    message: str
    """Its message, without what differs from failure to failure: ‹n›, ‹id›, ‹text› …"""
    sample: str
    """The latest message as it was raised, at most 4,000 characters; empty if the step is sensitive."""
    frame: str
    """The innermost file and function of the project's own code, such as `shop/payments.py, charge_card`, or empty."""
    first_seen: datetime
    last_seen: datetime
    state: str
    """open, resolved or ignored. A resolved group that fails again is open, and so is an ignored one past its limit."""
    decided_by: str
    decided_at: datetime | None
    reason: str
    ignored_until: datetime | None
    ignored_count: int | None
    errored: int
    """Instances that are errored now, with this as their latest failure."""
    retrying: int
    """Instances that wait for a retry now, with this as their latest failure."""
    attempts: int
    """Failed attempts in 14 days; failed instances, if the handler itself failed."""


@dataclass(frozen=True, slots=True)
class Groups:
    """A page of groups, and where the next one begins; None after the last."""

    groups: list[FailureGroup]
    next: str | None


@dataclass(frozen=True, slots=True)
class FailedInstances:
    """The keys of a page of instances, where the next page begins, and how many there are of each kind."""

    keys: list[int]
    next: str | None
    errored: int
    retrying: int
    paused: int
    went_on: int


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """The newest failure of some groups."""

    workflow: str
    instance_key: int
    instance_id: str
    generation: int
    step_seq: int | None
    """The number of its step; None if the handler itself failed."""
    phase: str
    attempt: int | None
    """The number of the attempt; None if the handler itself failed."""
    max_attempts: int | None
    """How many attempts the step may make."""
    failed_at: datetime
    error: dict[str, Any]
    """What was recorded: type, message, details and traceback."""
