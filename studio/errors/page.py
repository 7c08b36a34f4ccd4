"""What the page of an error shows: one group, or those of the same error in several workflows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Min
from django.http import Http404
from django.utils import timezone

from engine.models import Audit, Instance
from engine.status import failures
from engine.status.failures import FailedAttempt, FailureGroup, Recovered
from engine.status.failures.trend import Unit
from studio.access.permissions import Verb, allowed
from studio.bulk.address import MOST_GROUPS, retry_address
from studio.errors.address import KINDS, SPANS, ErrorAddress
from studio.errors.chart import ChartBar, chart_bars
from studio.errors.common import Common, common_of
from studio.errors.different import FailedRow, failed_rows
from studio.errors.groups import title_of
from studio.errors.trace import Trace, trace_of
from studio.errors.visibility import relations_of
from studio.instance.steps.failures import failure
from studio.instances.address import address_of
from studio.workflows.pauses import Pauses, pauses_of

_SEARCHES = {
    "errored": "status:errored",
    "retrying": "status:retrying",
    "paused": "status:paused",
    "went_on": "-status:errored -status:retrying -status:paused",
}
ROWS = 25
TOLD = 20
UNITS: dict[str, Unit] = {"hour": "minutes", "day": "hour", "fortnight": "day"}
STILL = timedelta(hours=1)  # after its last failure


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several views: its name, a number, its address, and whether it is the present one."""

    name: str
    count: int | None
    address: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """An error, ready to render."""

    asked: ErrorAddress
    relations: tuple[FailureGroup, ...]
    """The groups of the error in all workflows."""
    groups: tuple[FailureGroup, ...]
    """Those that the address asks for, the one with the most errored instances first."""
    now: datetime
    days: tuple[int, ...]
    trend: tuple[tuple[datetime, int], ...]
    common: tuple[Common, ...]
    recovered: Recovered | None
    next_at: datetime | None
    sample: FailedAttempt | None
    trace: Trace | None
    rows: tuple[FailedRow, ...]
    older: str
    counts: dict[str, int]
    told: tuple[Audit, ...]
    """Notes and decisions, the newest first."""
    pauses: Pauses
    may_act: bool

    @property
    def first(self) -> FailureGroup:
        return self.groups[0]

    @property
    def title(self) -> str:
        return title_of(max(self.groups, key=lambda group: group.last_seen))

    @property
    def fingerprints(self) -> list[str]:
        return [group.fingerprint for group in self.groups]

    @property
    def state(self) -> str:
        """Open if any group is; ignored if some are and the others are resolved."""
        states = {group.state for group in self.groups}
        return next(state for state in ("open", "ignored", "resolved") if state in states)

    @property
    def look(self) -> str:
        return {"open": "errored", "ignored": "paused", "resolved": "complete"}[self.state]

    @property
    def decided(self) -> list[FailureGroup]:
        return [group for group in self.groups if group.state != "open"]

    @property
    def can_compare(self) -> bool:
        """Whether enough instances fail now to have something in common."""
        return self.counts["errored"] + self.counts["retrying"] > 1

    @property
    def first_seen(self) -> datetime:
        return min(group.first_seen for group in self.groups)

    @property
    def last_seen(self) -> datetime:
        return max(group.last_seen for group in self.groups)

    @property
    def is_recent(self) -> bool:
        return self.now - self.last_seen < STILL

    @property
    def today(self) -> int:
        return self.days[-1]

    @property
    def before(self) -> int:
        return sum(self.days[:-1])

    @property
    def bars(self) -> list[ChartBar]:
        return chart_bars(self.trend, self.asked.span)

    @property
    def scopes(self) -> list[Choice]:
        """All workflows with this error, then each; empty if there is only one."""
        if len(self.relations) < 2:
            return []
        total = sum(group.errored for group in self.relations)
        word = "Both workflows" if len(self.relations) == 2 else f"All {len(self.relations)} workflows"
        return [
            Choice(word, total, self.asked.url(workflow=""), is_chosen=not self.asked.workflow),
            *(
                Choice(
                    group.workflow,
                    group.errored,
                    self.asked.url(workflow=group.workflow),
                    is_chosen=self.asked.workflow == group.workflow,
                )
                for group in self.relations
            ),
        ]

    @property
    def spans(self) -> list[Choice]:
        return [
            Choice(
                word,
                None,
                self.asked.url(span="" if name == "fortnight" else name),
                is_chosen=name == self.asked.span,
            )
            for name, word in SPANS.items()
        ]

    @property
    def kinds(self) -> list[Choice]:
        return [
            Choice(
                word,
                self.counts[name],
                self.asked.url(kind="" if name == "errored" else name),
                is_chosen=name == self.asked.kind,
            )
            for name, word in KINDS.items()
        ]

    @property
    def sample_place(self) -> str:
        """The step of the sample on the page of its instance."""
        sample = self.sample
        if sample is None or sample.step_seq is None:
            return ""
        return f"#s-{sample.step_seq}" + (f"-a{sample.attempt}" if sample.phase == "do" else "")

    @property
    def search_address(self) -> str:
        """The list of instances, searched for those of the chosen kind."""
        query = f"error-group:{','.join(self.fingerprints[:MOST_GROUPS])} {_SEARCHES[self.asked.kind]}"
        return address_of({"query": query})

    @property
    def retry_address(self) -> str:
        """The dialog that retries what is errored, or else what backs off; empty if nothing is."""
        for status in ("errored", "retrying"):
            if self.counts[status]:
                return retry_address(self.fingerprints, status, back=self.asked.url())
        return ""

    @property
    def retried(self) -> int:
        return self.counts["errored"] or self.counts["retrying"]

    @property
    def retry_word(self) -> str:
        return "" if self.counts["errored"] else " now"

    @property
    def is_failing(self) -> bool:
        """Whether failures still arrive, so that it is better paused than retried."""
        return self.is_recent and self.recovered is None and bool(self.pauses.active)

    @property
    def older_address(self) -> str:
        return self.asked.url(after=self.older) if self.older else ""

    @property
    def newest_address(self) -> str:
        return self.asked.url() if self.asked.after else ""


def read(asked: ErrorAddress, user: Any) -> ErrorPage | None:
    """Read the page of an error; None if there is none that the user may see."""
    try:
        relations = relations_of(asked.fingerprint, user)
    except Http404:
        return None
    groups = scope_of(asked, relations)
    if not groups:
        return None
    prints = [group.fingerprint for group in groups]
    now = timezone.now()
    days = failures.trend(prints)
    sample = failures.sample_trace(prints)
    recorded = failure(sample.error) if sample is not None else None
    common = common_of(prints)
    found = failures.instances(prints, which=asked.kind, limit=ROWS, after=asked.after or None)
    return ErrorPage(
        asked=asked,
        relations=tuple(relations),
        groups=tuple(groups),
        now=now,
        days=tuple(count for _, count in days),
        trend=tuple(days if asked.span == "fortnight" else failures.trend(prints, unit=UNITS[asked.span])),
        common=common,
        recovered=failures.recovered(prints),
        next_at=_next_attempt(prints),
        sample=sample,
        trace=trace_of(recorded) if recorded is not None else None,
        rows=failed_rows(prints, found.keys, common),
        older=found.next or "",
        counts={kind: getattr(found, kind) for kind in KINDS},
        told=tuple(failures.told(prints, limit=TOLD)),
        pauses=pauses_of(sorted({group.workflow for group in groups}), asked.url()),
        may_act=all(allowed(user, Verb.OPERATE, group.workflow) for group in groups),
    )


def scope_of(asked: ErrorAddress, relations: Sequence[FailureGroup]) -> list[FailureGroup]:
    """Return the groups that an address asks for."""
    return [group for group in relations if asked.workflow in ("", group.workflow)]


def _next_attempt(prints: Sequence[str]) -> datetime | None:
    waiting = Instance.objects.filter(fingerprint__in=prints, status="waiting", waiting_for="retry")
    found: datetime | None = waiting.aggregate(at=Min("wake_at"))["at"]
    return found
