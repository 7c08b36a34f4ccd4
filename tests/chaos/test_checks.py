"""Every check of the verdict finds what was planted for it, and nothing in a run that went well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from engine.invariants import INVARIANTS, Finding, Offender
from tests.chaos.case import Case, End
from tests.chaos.evidence import Evidence
from tests.chaos.faults import Fault
from tests.chaos.goals import goals
from tests.chaos.ops import Op
from tests.chaos.plan import Due, Plan
from tests.chaos.record import AttemptRow, AuditRow, EventRow, InstanceRow, Record, StepRow
from tests.chaos.run import with_children
from tests.chaos.stories import Deed, Story
from tests.chaos.verdict import CHECKS, judge
from tests.chaos.watch import Sample
from tests.process.ledger import Line

pytestmark = pytest.mark.first_tier

OPS = [Op("work", "work-1", 0.1), Op("sleep", "sleep-2", 1.0), Op("event", "event-3", what="go")]
OUTPUT = '["work-1 of i0", null, {"for": "i0"}]'
WORKER, ZOMBIE = 10, 11


def story() -> Story:
    deeds = [Deed(0, "send", "event-3", {"for": "i0"}, is_repeated=True), Deed(1, "pause"), Deed(2, "resume")]
    return Story("i0", "waits", 0, OPS, deeds, is_repeated=True)


def ended() -> Story:
    return Story("i1", "terminated", 0, [], [Deed(0, "terminate")], status="terminated")


def broken() -> Story:
    return Story("i2", "broken", 0, [Op("broken", "broken-1")], status="errored")


def undone() -> Story:
    return Story(
        "i3",
        "undone",
        0,
        [Op("undo", "undo-1"), Op("undo", "undo-2"), Op("broken", "broken-3")],
        status="errored",
    )


def parent() -> Story:
    return Story("i4", "parent", 0, [Op("child", "child-1", ops=[Op("atomic", "atomic-1")])])


def line(
    what: str,
    at: float,
    instance: str = "i0",
    step: str = "",
    attempt: int = 0,
    key: str = "",
    pid: int = WORKER,
) -> Line:
    return Line(what, at, pid, instance, step, attempt, key)


def lines() -> list[Line]:
    """The ledger of a run in which a zombie began `work-1`, and another worker did it."""
    return [
        *(line("accepted", 1, name) for name in ("i0", "i1", "i2", "i3", "i4")),
        line("again", 1, step="known"),
        line("start", 2, step="work-1", attempt=1, key="k", pid=ZOMBIE),
        line("start", 3, step="work-1", attempt=2, key="k"),
        line("end", 3.1, step="work-1", attempt=2, key="k"),
        line("send", 4, step="event-3", key="70"),
        line("sent again", 4, step="event-3", key="70"),
        line("pause", 5, key="paused"),
        line("resume", 6, key="queued"),
        line("terminate", 5, "i1", key="terminated"),
        *(line(what, at, "i2", "broken-1", 1, "l") for what, at in (("start", 7), ("failed", 7.1))),
        *(line("undone", 8 + turn, "i3", f"undo-{2 - turn}", 1) for turn in range(2)),
        *(line(what, 8, "i4-x", "atomic-1", 1, "a") for what in ("start", "end")),
        *(line(what, 9, f"p{turn}") for turn in range(4) for what in ("passing", "passed")),
        *(line("http", 10 + turn, "ab"[turn % 2], "GET /", 200, "0.1") for turn in range(20)),
        *(line(what, 9, f"{machine}-0", "complete 1") for machine in "ab" for what in ("opened", "shown")),
    ]


def record() -> Record:
    return Record(
        instances={
            "i0": InstanceRow(1, "i0", "complete", OUTPUT, None, 0),
            "i1": InstanceRow(2, "i1", "terminated", None, None, 0),
            "i2": InstanceRow(3, "i2", "errored", None, {"type": "BrokenError"}, 0),
            "i3": InstanceRow(4, "i3", "errored", None, {"type": "BrokenError"}, 0, "complete"),
            "i4": InstanceRow(5, "i4", "complete", "[1]", None, 0),
            "i4-x": InstanceRow(6, "i4-x", "complete", '["atomic-1 of i4-x"]', None, 0, "", "i4", "child-1"),
        },
        steps=[
            StepRow("i0", "work-1", "do", "complete", 2, 2, 3.1),
            StepRow("i0", "sleep-2", "sleep", "complete", 0, 3.1, 4.2),
            StepRow("i0", "event-3", "event", "complete", 0, 4.2, 4.3),
            StepRow("i2", "broken-1", "do", "errored", 1, 7, 7.1),
            *(StepRow("i3", f"undo-{turn}", "do", "complete", 1, 7, 7.1, "complete") for turn in (1, 2)),
            StepRow("i4-x", "atomic-1", "do", "complete", 1, 8, 8.1),
        ],
        attempts=[
            AttemptRow("i0", "work-1", 1, "lost", ZOMBIE, False, 1.9, 2.9),
            AttemptRow("i0", "work-1", 2, "complete", WORKER, False, 2.9, 3.1),
            AttemptRow("i2", "broken-1", 1, "errored", WORKER, False, 7, 7.1),
            AttemptRow("i4-x", "atomic-1", 1, "complete", WORKER, False, 8, 8.1),
        ],
        events=[EventRow("i0", "70", "event-3", {"for": "i0"}, "consumed", 4, "event-3")],
        audit=[
            AuditRow("i0", "pause", "client", "running", "paused", 5),
            AuditRow("i0", "resume", "client", "paused", "queued", 6),
            AuditRow("i1", "terminate", "client", "running", "terminated", 5),
        ],
        undoing=[AttemptRow("i3", f"undo-{turn}", 1, "complete", WORKER, False, 8, 8.1) for turn in (2, 1)],
        sales=[("i4-x", "atomic-1")],
        deleted=8,
    )


class OneFault(Plan):
    def faults(self) -> list[Due]:
        return [Due(2.5, "zombie")]


def case(lines: list[Line], record: Record) -> Case:
    zombie = Fault("zombie", 2.5, 4, pids=[ZOMBIE])
    plan = OneFault(seed=1, minutes=1, load=40, rate=1, instances=3, longest=1)
    watch = SimpleNamespace(seen={}, samples=[], clusters={})
    monkey = SimpleNamespace(began=0.0, faults=[zombie], watch=watch, survivors=[], missed=[])
    return Case(
        plan=plan,
        calibrated=100,
        stories=with_children([story(), ended(), broken(), undone(), parent()], record),
        evidence=Evidence(lines, {}).judged([zombie]),
        record=record,
        findings=[],
        monkey=monkey,  # type: ignore[arg-type]
        end=End(load_ended=40, drained=1, tail=1),
        strays={},
        output="workers │ 2026-01-01 INFO engine.journal [-] lease of 1 lost: fenced",
        server_log="",
    )


def test_run_that_went_well_has_nothing_wrong() -> None:
    assert judge(case(lines(), record())) == {name: [] for name in CHECKS}


Ledger = list[Line]

# Plants: the check that must speak, and what is changed in the ledger and the record.
PLANTS: list[tuple[str, Callable[[Ledger, Record], object]]] = [
    ("everything was tried", lambda led, rec: remove(led, "pause")),
    ("everything was tried", lambda led, rec: rec.sales.clear()),
    ("accepted starts", lambda led, rec: rec.instances.pop("i0")),
    ("accepted starts", lambda led, rec: rec.instances.update(i9=replace(rec.instances["i0"], id="i9"))),
    ("accepted starts", lambda led, rec: change(led, "again", step="created")),
    ("accepted events", lambda led, rec: rec.events.clear()),
    ("accepted events", lambda led, rec: rec.events.append(replace(rec.events[0], dedup_key="other"))),
    ("accepted events", lambda led, rec: rec.events.__setitem__(0, replace(rec.events[0], payload={}))),
    ("accepted events", lambda led, rec: change(led, "sent again", key="71")),
    ("accepted events", lambda led, rec: led.append(line("too late", 9, step="event-4"))),
    ("accepted actions", lambda led, rec: rec.audit.pop()),
    ("accepted actions", lambda led, rec: rec.audit.append(replace(rec.audit[0], instance="i2"))),
    ("accepted actions", lambda led, rec: rec.audit.__setitem__(0, replace(rec.audit[0], actor="nobody"))),
    ("outcomes", lambda led, rec: instance(rec, output='["work-1 of i1", null, {"for": "i0"}]')),
    ("outcomes", lambda led, rec: instance(rec, output='["work-1 of i0", null, "timed out"]')),
    ("outcomes", lambda led, rec: instance(rec, status="errored", error={"type": "TypeError"})),
    ("bodies", lambda led, rec: led.append(line("start", 3, step="work-1", attempt=2, key="k", pid=12))),
    ("bodies", lambda led, rec: rec.attempts.pop(0)),
    ("bodies", lambda led, rec: remove(led, "end")),
    ("bodies", lambda led, rec: led.append(line("start", 9, "i0@2", "work-1", 1, "z"))),
    ("accepted starts", lambda led, rec: led.append(line("delete", 9, "i1", key="done"))),
    ("accepted actions", lambda led, rec: led.append(line("delete", 9, "i1", key="done"))),
    ("accepted actions", lambda led, rec: led.append(line("restart", 9, "i0", key="queued"))),
    ("completed once", lambda led, rec: led.append(line("start", 9, step="work-1", attempt=2, key="k"))),
    ("completed once", lambda led, rec: led.append(line("start", 3, step="work-1", attempt=3, key="k"))),
    ("completed once", lambda led, rec: begun_when_ended(led, rec, 4.0)),
    ("completed once", lambda led, rec: begun_when_ended(led, rec, 1.0, "i2")),
    ("idempotency keys", lambda led, rec: change(led, "start", attempt=1, key="other")),
    ("failures", lambda led, rec: attempt(rec, 0, status="errored")),
    ("failures", lambda led, rec: attempt(rec, 2, status="cancelled")),
    ("losses", lambda led, rec: attempt(rec, 0, pid=WORKER)),
    ("accepted starts", lambda led, rec: rec.instances.update(x=replace(rec.instances["i4-x"], id="x"))),
    (
        "outcomes",
        lambda led, rec: rec.instances.update({"i4-x": replace(rec.instances["i4-x"], output="[]")}),
    ),
    ("rollbacks", lambda led, rec: remove(led, "undone")),
    ("rollbacks", lambda led, rec: change(led, "undone", at=99.0)),
    ("rollbacks", lambda led, rec: rec.undoing.pop()),
    ("rollbacks", lambda led, rec: rec.undoing.append(replace(rec.undoing[0], number=2))),
    ("rollbacks", lambda led, rec: instance(rec, rollback="complete")),
    ("losses", lambda led, rec: rec.undoing.append(replace(rec.undoing[0], number=2, status="lost"))),
    ("atomic writes", lambda led, rec: rec.sales.clear()),
    ("atomic writes", lambda led, rec: rec.sales.append(rec.sales[0])),
    ("atomic writes", lambda led, rec: rec.sales.append(("i0", "atomic-9"))),
    ("sleeps", lambda led, rec: rec.steps.__setitem__(1, replace(rec.steps[1], finished=4.0))),
    ("pauses", lambda led, rec: rec.audit.__setitem__(1, replace(rec.audit[1], at=9.0))),
    ("retention", lambda led, rec: remove(led, "passing")),
    ("retention", lambda led, rec: remove(led, "passed")),
    ("retention", lambda led, rec: rec.instances.update(p0=replace(rec.instances["i0"], id="p0"))),
    ("retention", lambda led, rec: led.extend(line(what, 9, "p9") for what in ("passing", "passed"))),
    ("schedules", lambda led, rec: rec.planned.extend(["20261122T005000Z-0", "20261122T005000Z-0"])),
    ("pages", lambda led, rec: led.append(line("http", 9, "a", "GET /", 500, "0.1"))),
    ("pages", lambda led, rec: led.append(line("http", 9, "a", "GET /", 503, "0.1 5"))),
    ("pages", lambda led, rec: led.append(line("http", 9, "a", "GET /", 0, "0.1"))),
    ("pages", lambda led, rec: led.append(line("http", 9, "a", "GET /instances/i0/", 410, "0.1"))),
    ("sockets", lambda led, rec: remove(led, "shown")),
]


@pytest.mark.parametrize(("check", "plant"), PLANTS, ids=[f"{n} {one[0]}" for n, one in enumerate(PLANTS)])
def test_check_finds_what_is_planted(check: str, plant: Callable[[Ledger, Record], object]) -> None:
    ledger, told = lines(), record()
    if check == "pauses":
        told.attempts.append(AttemptRow("i0", "work-1", 3, "lost", ZOMBIE, False, 7, 7.1))
    plant(ledger, told)
    assert judge(case(ledger, told))[check]


def test_checks_of_the_whole_find_what_is_planted() -> None:
    bad = case(lines(), record())
    bad.findings = [Finding(INVARIANTS[0], 1, (Offender(1, "kitchen-sink", "i0", "two owners"),))]
    bad.end = End(load_ended=40, left=["i0"], stale=["a-0 shows too little"])
    bad.strays = {7: "workers"}
    bad.server_log = "ERROR:  deadlock detected"
    bad.output = "workers │ 2026-01-01 ERROR engine.shift [-] the cycle of instance 1 failed"
    looks = [Sample(at, {"web": 100 + 10 * at}, 1) for at in range(0, 40, 5)]
    bad.watch.samples.extend(looks)
    bad.faults.append(Fault("database fast", 2.0, 5.0))
    wanted = {
        "invariants",
        "all ends",
        "no strays",
        "deadlocks",
        "logs",
        "memory",
        "sockets",
        "fencing",
        "recovery",
    }
    bad.evidence.starts[:] = [1.0]
    assert wanted <= {name for name, found in judge(bad).items() if found}


@pytest.mark.parametrize(("calibrated", "load"), [(3000, 420), (1000, 420), (3000, 40)])
def test_goals_are_judged_in_whole_runs_on_a_machine_at_rest(calibrated: float, load: float) -> None:
    late = [replace(one, at=5.0) if (one.what, one.attempt) == ("start", 2) else one for one in lines()]
    told = record()
    told.steps[1] = replace(told.steps[1], finished=9.5)
    slow = case(late, told)
    slow.calibrated, slow.plan = calibrated, replace(slow.plan, load=load)
    slow.stories["i0"].deeds.clear()  # a sleep that somebody pauses is no late one
    slow.faults.extend([Fault("worker in a body", 2.5, 2.5, pids=[ZOMBIE]), Fault("database fast", 3.2, 3.3)])
    slow.evidence.starts[:] = [2.0, 7.0]
    assert len(list(goals(slow))) == (4 if (calibrated, load) == (3000, 420) else 0)


def test_a_body_may_start_while_its_worker_has_not_heard_of_the_end() -> None:
    ledger, told = lines(), record()
    begun_when_ended(ledger, told, 1.0)
    assert judge(case(ledger, told))["completed once"] == []


def test_a_kill_answers_for_the_time_until_the_next_attempt_alone() -> None:
    kill = Fault("worker in a body", 2.5, 2.5, pids=[ZOMBIE])
    assert Evidence(lines(), {}).taken_up(kill) == [0.5]
    superseded = replace(kill, at=3.5)
    assert Evidence([*lines(), line("start", 9, step="work-1", attempt=3)], {}).taken_up(superseded) == []


@pytest.mark.parametrize(
    ("paused", "resumed", "waited"),
    [(2.0, 2.9, []), (2.6, 2.9, []), (2.0, None, []), (2.0, 2.3, [0.5]), (3.5, 4.0, [0.5])],
)
def test_what_people_have_paused_waits_for_them(
    paused: float, resumed: float | None, waited: list[float]
) -> None:
    ledger = lines()
    change(ledger, "pause", at=paused)
    if resumed is None:
        remove(ledger, "resume")
    else:
        change(ledger, "resume", at=resumed)
    kill = Fault("worker in a body", 2.5, 2.5, pids=[ZOMBIE])
    assert Evidence(ledger, {}).taken_up(kill) == waited


def test_what_runs_beside_a_step_that_is_given_up_is_cancelled() -> None:
    told = record()
    told.attempts.append(AttemptRow("i2", "work-1", 1, "cancelled", WORKER, False, 4.9, 5.0))
    assert judge(case(lines(), told))["failures"] != []
    told.instances["i2"] = replace(told.instances["i2"], error={"type": "WorkerLostError"}, lost_alone=3)
    assert not any("was cancelled" in one for one in judge(case(lines(), told))["failures"])


def test_an_event_may_come_too_late_for_what_is_given_up() -> None:
    told, ledger = record(), [*lines(), line("too late", 9, "i2", step="event-4")]
    assert judge(case(ledger, told))["accepted events"] != []
    told.instances["i2"] = replace(told.instances["i2"], error={"type": "WorkerLostError"}, lost_alone=3)
    assert judge(case(ledger, told))["accepted events"] == []


def test_a_machine_that_dies_may_answer_once_more() -> None:
    asked = [line("http", 20.1, "b", "GET /", 200, "0.05"), line("http", 20.5, "b", "GET /", 0, "0.05")]
    dying = case([*lines(), *asked], record())
    assert judge(dying)["pages"] != []
    dying.faults.append(Fault("machine", 20.0, 20.3, machine="b"))
    assert judge(dying)["pages"] == []


def begun_when_ended(ledger: Ledger, record: Record, late: float, name: str = "i1") -> None:
    """Let a body start so many seconds after its step was cancelled, by default by somebody."""
    record.steps.append(StepRow(name, "work-1", "do", "cancelled", 1, 4.9, 5.0))
    record.attempts.append(AttemptRow(name, "work-1", 1, "cancelled", WORKER, False, 4.9, 5.0))
    ledger.append(line("start", 5.0 + late, name, "work-1", 1, "w"))


def remove(ledger: Ledger, what: str) -> None:
    ledger[:] = [one for one in ledger if one.what != what]


def change(ledger: Ledger, what: str, **fields: object) -> None:
    place = next(place for place, one in enumerate(ledger) if one.what == what)
    ledger[place] = replace(ledger[place], **fields)  # type: ignore[arg-type]


def instance(record: Record, **fields: object) -> None:
    record.instances["i0"] = replace(record.instances["i0"], **fields)  # type: ignore[arg-type]


def attempt(record: Record, place: int, **fields: object) -> None:
    record.attempts[place] = replace(record.attempts[place], **fields)  # type: ignore[arg-type]
