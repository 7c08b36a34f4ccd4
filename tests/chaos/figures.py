"""The numbers of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from tests.chaos.case import Case
from tests.chaos.compare import late_starts
from tests.chaos.evidence import percentile
from tests.chaos.faults import KILLED
from tests.chaos.judgement import growth, silences

LATE = 20.0  # longer than any pause of a supervisor


def figures(case: Case) -> dict[str, Any]:
    return {
        "plan": case.plan.to_json(),
        "calibrated": case.calibrated,
        "faults": faults(case),
        "missed": dict(Counter(case.monkey.missed)),
        "accepted": accepted(case),
        "outcome": outcome(case),
        "bodies": bodies(case),
        "fencing": fencing(case),
        "wake-ups": wake_ups(case),
        "load": load(case),
        "pages": pages(case),
        "sockets": sockets(case),
        "invariants": invariants(case),
        "drain": case.end.drained,
        "tail": case.end.tail,
        "crashing": sorted(case.crashing),
        "memory": growth(case),
        "overdue": spread(one.overdue for one in case.watch.samples),
        "connections": max((one.connections for one in case.watch.samples), default=0),
        "log": [fault.to_json() for fault in case.faults],
    }


def spread(values: Iterable[float]) -> dict[str, float]:
    known = list(values)
    found = {"p50": percentile(known, 0.5), "p95": percentile(known, 0.95), "p99": percentile(known, 0.99)}
    return {name: round(value, 4) for name, value in (found | {"max": max(known, default=0.0)}).items()}


def faults(case: Case) -> dict[str, dict[str, Any]]:
    """Count each kind: all, the real ones that came while bodies ran, the bodies that they took."""
    found: dict[str, dict[str, Any]] = defaultdict(
        lambda: {"all": 0, "in flight": 0, "hit": 0, "seconds": []}
    )
    for fault in case.faults:
        one = found[fault.kind]
        one["all"] += 1
        one["in flight"] += fault.is_real and fault.in_flight > 0
        one["hit"] += fault.hit
        one["seconds"].append(round(fault.until - fault.at, 2))
    return dict(found)


def accepted(case: Case) -> dict[str, int]:
    ledger = case.evidence.by_what
    counted = (
        "accepted",
        "again",
        "send",
        "sent again",
        "pause",
        "resume",
        "terminate",
        "restart",
        "delete",
        "not accepted",
    )
    return {what: len(ledger[what]) for what in counted} | {
        "instances": sum(name.startswith("i") for name in case.record.instances),
        "events": len(case.record.events),
        "audit rows": len(case.record.audit),
    }


def outcome(case: Case) -> dict[str, int]:
    rows = [row for name, row in case.record.instances.items() if name in case.told]
    return dict(Counter(row.status for row in rows)) | {
        f"planned {status}": count
        for status, count in Counter(story.status for story in case.told.values()).items()
    }


def bodies(case: Case) -> dict[str, Any]:
    status = Counter(row.status for row in case.record.attempts)
    ends = Counter(run.body[:2] for run in case.evidence.runs if run.how == "end")
    complete = sum(row.status == "complete" and row.kind == "do" for row in case.record.steps)
    hit = sum(fault.hit > 0 for fault in case.faults if fault.kind in KILLED)
    return {
        "started": len(case.evidence.runs),
        "ended": sum(ends.values()),
        "complete steps": complete,
        "ended again, their first end unrecorded": sum(times - 1 for times in ends.values() if times > 1),
        "attempts": dict(status),
        "lost by a killed process": round(status["lost"] / max(hit, 1), 2),
        "poisoned": len(case.evidence.by_what["poison"]),
    }


def fencing(case: Case) -> dict[str, int]:
    """Count refused writes, and bodies of a step that ran at the same time in two processes."""
    overlaps = 0
    for runs in case.evidence.runs_of.values():
        known = sorted((run.started, run.ended) for run in runs if run.ended is not None)
        overlaps += sum(later[0] < former[1] for former, later in pairwise(known))
    return {"fenced": case.output.count(": fenced"), "overlapping bodies": overlaps}


def wake_ups(case: Case) -> dict[str, Any]:
    evidence = case.evidence
    killed = case.of(*KILLED)
    after_kill = [at - fault.at for fault in killed if (at := evidence.next_start(fault.at))]
    return {
        "kill to next body anywhere": spread(after_kill),
        "kill to next attempt at what it took": spread(
            seconds for fault in killed for seconds in evidence.taken_up(fault)
        ),
        "start of a cluster to its last part": spread(
            seen - main.born for main, seen in case.watch.clusters.items() if main.born > case.began
        ),
        "database up to first body": [
            round(at - fault.until, 2) for fault in case.downtimes if (at := evidence.next_start(fault.until))
        ],
        "web killed to its next page": [
            round(end - begin, 2)
            for name in ("a", "b")
            for begin, end in silences(case, name)
            if end - begin < LATE
        ],
        "lateness of sleeps": spread(_late_sleeps(case)),
        "end by people to a body that had not heard of it": spread(
            late for _, status, late in late_starts(case) if status == "cancelled"
        ),
        "event to its wait": spread(_event_latencies(case)),
    }


def _late_sleeps(case: Case) -> Iterable[float]:
    for story in case.told.values():
        for name, op in story.steps().items():
            row = case.steps.get((story.id, name))
            if op.kind == "sleep" and not story.is_steered and row and row.finished is not None:
                yield row.finished - row.started - op.seconds


def _event_latencies(case: Case) -> Iterable[float]:
    for event in case.record.events:
        wait = case.steps.get((event.instance, event.consumed_by or ""))
        if wait and wait.finished is not None:
            yield wait.finished - max(event.received, wait.started)


def load(case: Case) -> dict[str, Any]:
    ends = [run.ended for run in case.evidence.runs if run.how == "end" and run.ended is not None]
    seconds = Counter(int(at - case.began) for at in ends if case.began < at < case.end.load_ended)
    return {
        "bodies a second": round(sum(seconds.values()) / max(case.end.load_ended - case.began, 1), 1),
        "peak": max(seconds.values(), default=0),
        "accepted to first body": spread(_waits_for_first_body(case)),
    }


def _waits_for_first_body(case: Case) -> Iterable[float]:
    first: dict[str, float] = {}
    for run in case.evidence.runs:
        first.setdefault(run.body[0], run.started)
    for line in case.evidence.by_what["accepted"]:
        story = case.stories[line.instance]
        if story.ops[0].kind not in ("sleep", "event") and not story.is_steered and line.instance in first:
            yield max(0.0, first[line.instance] - line.at)


def pages(case: Case) -> dict[str, Any]:
    answered = [one for one in case.requests if one.status in (200, 302)]
    return {
        "by status": {
            str(status): count for status, count in Counter(one.status for one in case.requests).items()
        },
        "seconds": spread(one.ended - one.began for one in answered),
    }


def invariants(case: Case) -> dict[str, int]:
    """Count the violations by the invariant's id."""
    found: dict[str, int] = Counter()
    for finding in case.findings:
        found[finding.invariant.id] += finding.count
    return dict(found)


def sockets(case: Case) -> dict[str, Any]:
    """Count what open pages were shown, and how long each was without its socket."""
    by_page: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for what in ("opened", "cut off"):
        for line in case.evidence.by_what[what]:
            by_page[line.instance].append((line.at, what))
    gaps = []
    for moments in by_page.values():
        cut_at = None
        for at, what in sorted(moments):
            if what == "opened" and cut_at is not None:
                gaps.append(at - cut_at)
            cut_at = None if what == "opened" else (cut_at or at)
    return {
        "pages": len(by_page),
        "drawn": len(case.evidence.by_what["shown"]),
        "cut off": len(gaps),
        "seconds until open again": spread(gaps),
    }
