"""The engine's record against the ledger and the stories: each check returns what is wrong, a sentence each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.chaos.case import Case, overlaps
from tests.chaos.evidence import Run
from tests.chaos.ops import ATTEMPTS_OF_THE_BROKEN, flat
from tests.chaos.record import instance_of, plain
from tests.chaos.stories import CHILD

# Answers that say that this very call had an effect; of a resume none does: the instance may have gone on since.
DONE = {
    "pause": ("paused", "waiting_for_pause", "done"),
    "resume": (),
    "terminate": ("terminated", "done"),
    "restart": ("queued", "done"),
    "delete": ("done",),
}
# By how much the workers' idea of the database's clock may be off.
SKEW = 0.5
# How long a worker on a loaded machine may take to hear that somebody has ended what it holds.
NEWS = 3.0
MOST_CRASHING = 0.01
LEAST_TOLD = 0.4


def starts(case: Case) -> Iterator[str]:
    """Every accepted start is there, once, and nothing else is."""
    accepted = {line.instance for line in case.evidence.by_what["accepted"]}
    present = {name for name in case.record.instances if name.startswith("i")}
    yield from (f"{name} was accepted and is not there" for name in accepted - present - case.deleted)
    yield from (f"{name} was deleted and is there" for name in present & case.deleted)
    accepted |= {name for name, story in case.told.items() if story.kind == CHILD}
    calls = Counter((row.parent, row.called) for row in case.record.instances.values() if row.parent)
    yield from (f"{call} has started {times} children" for call, times in calls.items() if times > 1)
    yield from (f"{name} is there and was never accepted" for name in present - accepted)
    yield from (f"{name} was never started" for name in case.told.keys() - accepted)
    if len(case.told) < LEAST_TOLD * len(case.stories):
        yield f"only {len(case.told)} of {len(case.stories)} could be started: the machine is too slow"
    for line in case.evidence.by_what["again"]:
        story = case.stories[line.instance]
        if line.step == "created" and not story.is_in_studio:
            yield f"{line.instance} was created a second time"


def events(case: Case) -> Iterator[str]:
    """Every accepted event is there, once, with its payload, and nothing else is."""
    present = {(row.instance, row.dedup_key): row for row in case.record.events}
    if len(present) != len(case.record.events):
        yield "two events have one dedup key"
    accepted = set()
    for line in case.evidence.by_what["send"]:
        story = case.stories[line.instance]
        dedup = f"studio:{line.key}" if story.is_in_studio else line.step
        accepted.add((line.instance, dedup))
        row = present.get((line.instance, dedup))
        payload = next(deed.payload for deed in story.deeds if deed.key == line.step)
        if row is None:
            yield f"event {line.step} of {line.instance} was accepted and is not there"
        elif row.payload != payload or not (story.is_in_studio or row.key == line.key):
            yield f"event {line.step} of {line.instance} is another one: {row}"
    yield from (f"event {key} was never accepted" for key in present.keys() - accepted)
    for line in case.evidence.by_what["too late"]:
        if line.instance not in case.given_up:
            yield f"{line.instance} had ended before its event {line.step}"
    first = {(line.instance, line.step): line.key for line in case.evidence.by_what["send"]}
    for line in case.evidence.by_what["sent again"]:
        if first[line.instance, line.step] != line.key:
            yield f"event {line.step} of {line.instance} was taken twice"


def actions(case: Case) -> Iterator[str]:
    """Every accepted action is in the audit trail, with its actor; what is in there was asked for."""
    trail = Counter((row.instance, row.verb) for row in case.record.audit)
    for row in case.record.audit:
        changes_nothing = row.verb in ("pause", "resume") and row.before == row.after
        if row.verb == "terminate" and _is_child(case, row.instance):
            continue  # with its parent, by nobody
        if row.actor not in ("client", "admin") or changes_nothing:
            yield f"the trail has {row}"
    asked = _asked(case)
    for (name, verb), answers in asked.items():
        done = sum(answer in DONE[verb] for answer in answers)
        if not done <= trail[name, verb] <= len(answers):
            yield f"{name} was told to {verb}, answers {answers}, and the trail has {trail[name, verb]}"
    for name, verb in trail:
        if verb in DONE and (name, verb) not in asked and not _is_child(case, name):
            yield f"nobody told {name} to {verb}"


def _is_child(case: Case, name: str) -> bool:
    return name in case.stories and case.stories[name].kind == CHILD


def _asked(case: Case) -> dict[tuple[str, str], list[str]]:
    """Return what each instance was told, with the answers."""
    asked: dict[tuple[str, str], list[str]] = defaultdict(list)
    for verb in DONE:
        for line in case.evidence.by_what[verb]:
            asked[line.instance, verb].append(line.key)
    return asked


def outcomes(case: Case) -> Iterator[str]:
    """Every instance ends as its story tells, with the output that the oracle gives.

    Not so one with a step that ran alone three times when its worker was killed: the engine must give that up.
    """
    if len(case.crashing) > MOST_CRASHING * len(case.told):
        yield f"{len(case.crashing)} were given up by chance: {sorted(case.crashing)[:10]}"
    for name, story in case.told.items():
        row = case.record.instances.get(name)
        if row is None or name in case.given_up:
            continue
        if row.status != story.status:
            yield f"{name} ({story.kind}) is {row.status}, not {story.status}: {row.error}"
        elif story.status == "complete" and plain_text(row.output) != plain(story.output):
            yield f"{name} ({story.kind}) returned {str(row.output)[:300]}, not {plain(story.output)[:300]}"
        elif story.status == "errored" and not (row.error and row.error["type"] == "BrokenError"):
            yield f"{name} failed with {row.error}"


def bodies(case: Case) -> Iterator[str]:
    """Every body ran in an attempt of its own that was recorded; what is recorded as complete ended."""
    recorded = {(row.instance, row.step, row.number): row for row in case.record.attempts}
    runs = [run for run in case.evidence.runs if instance_of(run.body[0]) not in case.deleted]
    ran = Counter(run.body for run in runs)
    yield from (f"{body} ran {times} times" for body, times in ran.items() if times > 1)
    yield from (f"{body} ran and is not recorded" for body in ran.keys() - recorded.keys())
    ended = {run.body for run in case.evidence.runs if run.how == "end"}
    for key, row in recorded.items():
        if row.status == "complete" and key not in ended:
            yield f"{key} is recorded as complete and did not end"


def once(case: Case) -> Iterator[str]:
    """No body of a step starts after the step was finished.

    A worker that is stopped, or cut off, between the record of an attempt and the start of its body starts it when it
    wakes up: that nobody can hold back, and nothing of it counts. So does one that has not heard yet that somebody has
    ended or restarted the instance: its threads take the next body of their queue while its loop waits for its turn.
    """
    rows = [row for row in case.record.attempts if row.status == "complete"]
    complete = {(row.instance, row.step): row.number for row in rows}
    for run in case.evidence.runs:
        step, number = run.body[:2], run.body[2]
        if number > complete.get(step, number):
            yield f"{run.body} started although attempt {complete[step]} is complete"
    for run, status, late in late_starts(case):
        if late > (NEWS if status == "cancelled" and _is_ended_from_outside(case, run) else SKEW):
            yield f"{run.body} started {late:.2f} s after its step was {status}"


def late_starts(case: Case) -> Iterator[tuple[Run, str, float]]:
    """Give the bodies that started when their step was over, with its status and by how many seconds too late."""
    for run in case.evidence.runs:
        row = case.steps.get(run.body[:2])
        if row is None or row.finished is None or run.started <= row.finished:
            continue
        if not case.was_a_zombie(run.pid, run.started, run.started):
            yield run, row.status, run.started - row.finished


def _is_ended_from_outside(case: Case, run: Run) -> bool:
    """Tell whether its worker may have had to hear of the end: from people, or from who holds the parent."""
    name = instance_of(run.body[0])
    row = case.record.instances.get(name)
    return (row is not None and bool(row.parent)) or any(
        one.instance == name and one.verb in ("terminate", "restart") for one in case.record.audit
    )


def keys(case: Case) -> Iterator[str]:
    """The idempotency key is the same on every attempt of a step, and no other step's."""
    by_step: dict[tuple[str, str], set[str]] = defaultdict(set)
    for line in case.evidence.by_what["start"]:
        by_step[line.instance, line.step].add(line.key)
    for line in case.evidence.by_what["undo"]:
        by_step[line.instance, f"the rollback of {line.step}"].add(line.key)
    yield from (f"{step} has keys {keys}" for step, keys in by_step.items() if len(keys) > 1)
    shared = Counter(key for keys in by_step.values() for key in keys)
    yield from (f"{times} steps have the key {key}" for key, times in shared.items() if times > 1)


def failures(case: Case) -> Iterator[str]:
    """Attempts fail where a story says so, as often as it says, and are cancelled where somebody steers.

    So is what runs beside a step that is given up, since that ends the instance. A body that still waits for a
    thread when its instance is to pause is cancelled, and begins after the pause.
    """
    failed: dict[tuple[str, str], int] = Counter()
    for row in case.record.attempts:
        story = case.stories.get(instance_of(row.instance))
        if row.status == "errored":
            # What an atomic body writes with may be away.
            is_atomic = story is not None and story.steps()[row.step].kind == "atomic"
            if not (is_atomic and overlaps(row.started, row.finished or row.started, case.outages)):
                failed[row.instance, row.step] += 1
        elif row.status == "timed_out":
            yield f"{row} timed out"
        elif (
            row.status == "cancelled"
            and not (story and story.is_steered)
            and row.instance not in case.crashing
        ):
            yield f"{row} was cancelled"
    for (name, step), times in failed.items():
        story = case.stories.get(instance_of(name))
        op = story.steps()[step] if story else None
        most = {"flaky": op.times, "broken": ATTEMPTS_OF_THE_BROKEN, "nasty": 1}.get(op.kind, 0) if op else 0
        if times > most:
            yield f"{name} {step} failed {times} times, not {most}"


def losses(case: Case) -> Iterator[str]:
    """Every lost attempt was in a process that was killed or stopped, or ran while the database was away."""
    for row in (*case.record.attempts, *case.record.undoing):
        if row.status != "lost":
            continue
        ended = row.finished if row.finished is not None else row.started
        is_explained = row.pid in case.evidence.dead or case.was_a_zombie(row.pid, row.started, ended)
        if not is_explained and not overlaps(row.started, ended, case.outages):
            yield f"{row} was lost for no reason that this run gave"


def sleeps(case: Case) -> Iterator[str]:
    """No sleep ends early."""
    for story in case.told.values():
        for name, op in story.steps().items():
            row = case.steps.get((story.id, name))
            if op.kind == "sleep" and row and row.status == "complete" and row.finished is not None:
                slept = row.finished - row.started
                if slept < op.seconds - 0.001:
                    yield f"{story.id} {name} slept {slept:.3f} s of {op.seconds}"


def rollbacks(case: Case) -> Iterator[str]:
    """What failed is taken back, step by step in reverse order, each once to its end; nothing else is."""
    undone: dict[str, dict[str, float]] = defaultdict(dict)
    for line in case.evidence.by_what["undone"]:
        undone[line.instance].setdefault(line.step, line.at)
    ends = Counter((row.instance, row.step) for row in case.record.undoing if row.status == "complete")
    yield from (f"{step} was rolled back {times} times" for step, times in ends.items() if times > 1)
    for name, story in case.told.items():
        row = case.record.instances.get(name)
        if row is None or name in case.given_up or row.lost_alone >= 3:
            continue
        wanted = [op.name for op in reversed(flat(story.ops)) if op.kind == "undo"]
        order = sorted(undone[name], key=undone[name].__getitem__)
        if order != wanted:
            yield f"{name} was rolled back as {order}, not {wanted}"
        state = "complete" if wanted else ""
        states = {case.steps[name, step].rollback for step in wanted if (name, step) in case.steps}
        if row.rollback != state or states - {state} or any(not ends[name, step] for step in wanted):
            yield f"{name} has rollback {row.rollback!r}, its steps {states}, not {state!r}"


def sales(case: Case) -> Iterator[str]:
    """What atomic bodies wrote is there once for each that is complete, and for nothing else."""
    rows = Counter(sale for sale in case.record.sales if instance_of(sale[0]) not in case.deleted)
    yield from (f"{sale} is there {times} times" for sale, times in rows.items() if times > 1)
    kinds = {(name, op.name): op.kind for name, story in case.told.items() for op in story.steps().values()}
    complete = {
        (name, step)
        for (name, step), row in case.steps.items()
        if row.status == "complete" and kinds.get((instance_of(name), step)) == "atomic"
    }
    yield from (f"{sale} is not there" for sale in complete - rows.keys())
    yield from (f"{sale} is there, and its step is not complete" for sale in rows.keys() - complete)


def pauses(case: Case) -> Iterator[str]:
    """Between a pause that took effect at once and its resume nothing starts."""
    trail = defaultdict(list)
    for row in case.record.audit:
        trail[row.instance].append(row)
    begun = defaultdict(list)
    for attempt in case.record.attempts:
        begun[attempt.instance].append(attempt.started)
    for name, rows in trail.items():
        for row in rows:
            if row.after == "paused":
                resumed = next((later.at for later in rows if later.at > row.at), row.at)
                early = [at for at in begun[name] if row.at + SKEW < at < resumed - SKEW]
                yield from (f"{name} began an attempt {at - row.at:.2f} s after its pause" for at in early)


def plain_text(text: str | None) -> str:
    import json

    return plain(None if text is None else json.loads(text))
