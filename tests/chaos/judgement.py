"""Everything else that a run must show: faults that were real, recovery, clean ends, pages that answer."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.chaos.browser import NO_ANSWER, PATIENCE
from tests.chaos.case import Case, overlaps
from tests.chaos.evidence import percentile
from tests.chaos.faults import KILLED
from tests.chaos.plan import DRAIN_LIMIT, KILLS

# Limits that a loaded machine of two slow cores keeps; the report prints what was measured beside the targets.
FIRST_STEP_AFTER_DATABASE = 10.0  # target 3 s
WEB_IS_BACK = 45.0  # its supervisor waits up to 30 s when it dies often
SILENCE = 10.0  # from a kill to the next body anywhere; target 2 s
TAKEN_UP = 60.0  # p95, from a kill to the next attempt at what it took
MEMORY_GROWTH = 1.3

# What the engine says when it met a state that it holds for impossible, or gave up; and what nobody caught.
ALARMS = (
    "the cycle of instance",
    "the database refused the records",
    "the worker's loop has not moved",
    "The broker raised an error",
    "did not stop within",
    "Traceback (most recent call last)",
    "Error page",
)
# What a lost connection makes of a request, a task or a query, and a killed sentinel of a main process that starts.
EXPLAINED = re.compile(
    r"OperationalError|InterfaceError|PoolTimeout|AdminShutdown|ConnectionResetError|Sentinel exited with exit code -9"
)
BEGIN = re.compile(r"\w+ *│ (\d{4}-\d\d-\d\d |.*Reprise|Starting|Stopp|The embedded)")

MACHINES = ("a", "b")
GOOD = {200, 302, 409}
GONE = 410


def everything_was_tried(case: Case) -> Iterator[str]:
    """A run that accepted nothing, or hit nothing, proves nothing."""
    rare = () if case.plan.is_short else ("restart", "delete")
    for what in ("accepted", "send", "pause", "resume", "terminate", "again", "sent again", "undone", *rare):
        if not case.evidence.by_what[what]:
            yield f"no {what} was ever accepted"
    if not case.record.sales or not any(row.parent for row in case.record.instances.values()):
        yield "there was no atomic write, or no child"
    ended = Counter(row.status for row in case.record.instances.values())
    yield from (f"nothing ended as {one}" for one in ("complete", "errored", "terminated") if not ended[one])
    for kind, least in _kinds(case).items():
        hits = [fault for fault in case.of(kind) if fault.in_flight > 0]
        hits = [fault for fault in hits if fault.hit > 0 or kind not in ("worker in a body", "zombie")]
        if len(hits) < least:
            yield f"{kind} came while work was in flight {len(hits)} times, not {least}"


def _kinds(case: Case) -> dict[str, int]:
    """Return how often each kind must have come: two in five as planned where there may be no victim."""
    planned = Counter(due.kind for due in case.plan.faults())
    del planned["quarantine"]  # there is one only while instances have to run alone
    sought = {*KILLS, "zombie"}
    return {kind: max(1, count * 2 // 5) if kind in sought else count for kind, count in planned.items()}


def nothing_survives(case: Case) -> Iterator[str]:
    yield from case.monkey.survivors
    yield from (f"process {pid} was left: {what}" for pid, what in case.strays.items())


def zombies_are_fenced(case: Case) -> Iterator[str]:
    if case.of("zombie") and "fenced" not in case.output:
        yield "no write of a stopped worker was refused: they prove nothing"


def retention(case: Case) -> Iterator[str]:
    """What is kept no moment goes when it is over, and never before."""
    passed = {line.instance for line in case.evidence.by_what["passed"]}
    started = {line.instance for line in case.evidence.by_what["passing"]}
    yield from (f"{name} was deleted before its end" for name in started - passed)
    yield from (f"{name} was not deleted" for name in case.record.instances if name[0] == "p")
    # Each with its child; of a start of which nobody knows there may be one, too.
    if case.record.deleted < 2 * len(started):
        yield f"{len(started)} were started with a child each, and {case.record.deleted} told as deleted"
    if len(started) < case.plan.load / 10:
        yield f"only {len(started)} were started: that proves nothing"


def schedules(case: Case) -> Iterator[str]:
    """Each planned minute has started one instance, though each of them is deleted as soon as it is over."""
    times = Counter(case.record.planned)
    yield from (f"{name} was started {count} times" for name, count in times.items() if count > 1)
    # The first and the last minute are not whole ones, and of several that an outage covers the latest is made up for.
    if len(times) < case.plan.load // 60 - 1:
        yield f"in {case.plan.load:.0f} s {len(times)} minutes were seen to"


def all_ends(case: Case) -> Iterator[str]:
    """When faults stop, everything comes to its end, and new work is done at once."""
    if case.end.drained is None:
        yield f"after {DRAIN_LIMIT:.0f} s {len(case.end.left)} were open: {case.end.left[:5]}"
    if case.end.tail is None:
        yield "new instances after the faults did not complete in time"


def invariants(case: Case) -> Iterator[str]:
    """No invariant of the engine's own is violated."""
    for finding in case.findings:
        if finding.count:
            told = "; ".join(f"{bad}: {bad.detail}" for bad in finding.offenders)
            yield f"{finding.invariant.name} {finding.count} times: {told}"


def deadlocks(case: Case) -> Iterator[str]:
    # The server's statistics do not survive its crash; its log does.
    count = case.server_log.count("deadlock detected")
    if count:
        yield f"the database saw {count} deadlocks"


def alarms(case: Case) -> Iterator[str]:
    """The logs tell of nothing that no fault explains."""
    for entry in entries(case.output):
        if any(alarm in entry for alarm in ALARMS) and not EXPLAINED.search(entry):
            yield entry[:2000]


def entries(output: str) -> list[str]:
    """Put the lines of a traceback to the line that it belongs to; programs' lines may come in between."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in output.splitlines():
        program = line.split("│", 1)[0]
        if BEGIN.match(line) or not found[program]:
            found[program].append(line)
        else:
            found[program][-1] += f"\n{line}"
    return [entry for program in found.values() for entry in program]


def pages(case: Case) -> Iterator[str]:
    """The Studio answers; with 503 only while the database is away, with nothing only while it was killed."""
    if sum(request.status == 200 for request in case.requests) < case.plan.load / 4:
        yield "hardly any page was ever shown"
    for request in case.requests:
        if request.status in GOOD:
            continue
        if request.status == GONE:
            if not any(f"/instances/{name}/" in request.what for name in case.deleted):
                yield f"{request} told of a deletion that nobody asked for"
        elif request.status == 503:
            if not overlaps(request.began, request.ended, case.outages):
                yield f"{request} was refused although the database was there"
            elif not request.says_when:
                yield f"{request} did not say when to come again"
        elif request.status == NO_ANSWER:
            if not overlaps(request.began, request.ended, silences(case, request.machine)):
                yield f"{request} was not answered"
        else:
            yield f"{request}"


def sockets(case: Case) -> Iterator[str]:
    """Pages that stay open show in the end what the database says."""
    yield from case.end.stale
    shown = {line.instance for line in case.evidence.by_what["shown"]}
    opened = {line.instance for line in case.evidence.by_what["opened"]}
    yield from (f"the page {name} was never drawn" for name in opened - shown)
    if len({name.split("-")[0] for name in shown}) < len(MACHINES):
        yield "not every machine had an open page"


def silences(case: Case, machine: str) -> list[tuple[float, float]]:
    """Return when a machine's Studio could not answer: from its kill until it answers again, or cut off.

    While a machine dies its Studio may still answer.
    """
    windows = [
        (fault.at, min(web_is_back(case, fault.until, machine), fault.at + WEB_IS_BACK))
        for fault in case.of("web", "machine")
        if fault.machine == machine
    ]
    holes = [fault for fault in case.of("black hole") if fault.machine == machine]
    return windows + [(fault.at, fault.until + PATIENCE) for fault in holes]


def web_is_back(case: Case, after: float, machine: str) -> float:
    answered = (
        request.ended
        for request in case.requests
        if request.machine == machine and request.began > after and request.status in GOOD
    )
    return min(answered, default=after + WEB_IS_BACK)


def recovery(case: Case) -> Iterator[str]:
    """Work goes on soon after each fault."""
    for fault in case.of(*KILLED):
        is_judged = fault.at < case.end.load_ended - SILENCE
        if is_judged and not overlaps(fault.at, fault.at + SILENCE, case.outages):
            following = case.evidence.next_start(fault.at)
            if following is None or following > fault.at + SILENCE:
                yield f"no body started for {SILENCE} s after the kill of the {fault.kind}"
    for fault in case.downtimes:
        following = case.evidence.next_start(fault.until)
        if following is None or following > fault.until + FIRST_STEP_AFTER_DATABASE:
            yield f"no body started for {FIRST_STEP_AFTER_DATABASE} s after the return of the {fault.kind}"
    waited = [seconds for fault in case.of(*KILLED) for seconds in case.evidence.taken_up(fault)]
    if percentile(waited, 0.95) > TAKEN_UP:
        yield f"what a kill took waited {percentile(waited, 0.95):.1f} s (p95) for its next attempt"


def memory(case: Case) -> Iterator[str]:
    """The web process and the workers do not grow."""
    for part, (early, late) in growth(case).items():
        if early and late > early * MEMORY_GROWTH:
            yield f"{part} grew from {early} to {late} KiB"


def growth(case: Case) -> dict[str, tuple[int, int]]:
    """Return the memory of each part at a tenth of the load and at the end of it, in KiB: medians of three looks."""
    found = {}
    for part in ("web", "worker"):
        looks = [(one.at, one.memory[part]) for one in case.watch.samples if one.memory.get(part)]
        early = [kib for at, kib in looks if at > case.began + case.plan.load / 7][:3]
        late = [kib for at, kib in looks][-3:]
        found[part] = (percentile(early, 0.5), percentile(late, 0.5))
    return {part: (int(early), int(late)) for part, (early, late) in found.items()}
