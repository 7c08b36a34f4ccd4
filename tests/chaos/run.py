"""A run from its beginning to its end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from engine.invariants import INVARIANTS, look
from tests.chaos.case import Case, deaths
from tests.chaos.evidence import Evidence
from tests.chaos.ground import Ground
from tests.chaos.kills import SURVIVE_SECONDS
from tests.chaos.monkey import Monkey
from tests.chaos.plan import DRAIN_LIMIT, Plan
from tests.chaos.record import Record
from tests.chaos.stories import stories

ENGINE_CLIENTS = 3  # and one at the Studio of each machine
VISITORS = 4  # at each machine
GRACE = 15.0
BEGIN_IN = 0.5
BURST_SECONDS = 30.0
TAIL, BURST_STEPS = 20, 5
# So much of what the machine does without faults is asked of it with them: each kill costs as much again.
SHARE_OF_CAPACITY = 0.2
BODIES_AN_INSTANCE = 5.5


def run(plan: Plan, home: Path) -> Case:
    ground = Ground(home, plan)
    with ground.opened():
        calibrated = burst(ground, "c", 60 if plan.is_short else 200)
        plan = plan.at_rate(min(plan.rate, (calibrated or 0) * SHARE_OF_CAPACITY / BODIES_AN_INSTANCE))
        began = time.monotonic() + BEGIN_IN
        begin_load(ground, plan, began)
        monkey = Monkey(ground, plan, began)
        monkey.run()
        load_ended = time.monotonic()
        drained = drain(ground, monkey, load_ended)
        tail = burst(ground, "t", TAIL)
        case = look_back(ground, plan, monkey)
        case.began, case.load_ended, case.drained = began, load_ended, drained
        case.calibrated, case.tail = calibrated or 0, tail and TAIL * BURST_STEPS / tail
        ground.close()
        case.strays = ground.strays
        case.output, case.server_log = ground.outputs(), ground.server_log
    lines = ground.ledger.lines()
    case.evidence = Evidence(lines, deaths(case.faults, lines))
    case.evidence.judge(case.faults)
    case.ended = time.monotonic()
    return case


def burst(ground: Ground, prefix: str, count: int) -> float | None:
    """Return the steps a second of so many small instances; None if they did not complete in time."""
    assert ground.clients is not None
    ground.clients.start("burst", prefix=prefix, count=count, steps=BURST_STEPS, seconds=BURST_SECONDS)
    try:
        return float(ground.ledger.wait_for(BURST_SECONDS * 1.5, what="burst", instance=prefix).attempt)
    except AssertionError:
        return None


def begin_load(ground: Ground, plan: Plan, began: float) -> None:
    told: dict[str, Any] = {"plan": plan.to_json(), "began": began}
    browsers = [
        {"machine": name, "url": machine.url, "account": machine.account}
        for name, machine in ground.machines.items()
    ]
    assert ground.clients is not None
    for share in range(ENGINE_CLIENTS):
        ground.clients.start("customer", **told, share=share, of=ENGINE_CLIENTS, studio=None)
    for share, browser in enumerate(browsers):
        ground.clients.start("customer", **told, share=share, of=len(browsers), studio=browser)
    ground.clients.start("visitors", browsers=browsers * (1 if plan.is_short else VISITORS))


def drain(ground: Ground, monkey: Monkey, since: float) -> float | None:
    """Wait until the clients have done what they owe and nothing is open; return how long that took."""
    customers = ENGINE_CLIENTS + len(ground.machines)
    while time.monotonic() < since + DRAIN_LIMIT:
        monkey.settle(0.25)
        if len(ground.ledger.lines(what="done")) == customers and not still_open(ground):
            took = time.monotonic() - since
            monkey.settle(SURVIVE_SECONDS + 0.5)  # until the last deaths are checked
            return took
    return None


def still_open(ground: Ground) -> list[str]:
    query = (
        "SELECT concat_ws(' ', id, status, waiting_for, wake_at - clock_timestamp(), isolated) FROM engine_instance "
        "WHERE status NOT IN ('complete', 'errored', 'terminated') LIMIT 100"
    )
    with ground.connect() as connection:
        return [str(row[0]) for row in connection.execute(query).fetchall()]


def look_back(ground: Ground, plan: Plan, monkey: Monkey) -> Case:
    """Read all there is, while the machines still run."""
    open_at_end = still_open(ground)
    monkey.watch.sample()
    ground.end_clients()
    with ground.connect() as connection:
        findings = [look(connection.cursor(), one, grace=GRACE) for one in INVARIANTS]
        record = Record.read(connection, time.time() - time.monotonic())
    counts: dict[str, int] = {}
    for finding in findings:
        counts[finding.invariant.id] = counts.get(finding.invariant.id, 0) + finding.count
    told = {story.id: story for story in stories(plan.seed, plan.instances, plan.rate, plan.longest)}
    return Case(
        plan=plan,
        stories=told,
        evidence=Evidence([], {}),
        record=record,
        faults=monkey.faults,
        watch=monkey.watch,
        began=0,
        load_ended=0,
        drained=None,
        tail=None,
        calibrated=0,
        invariants=counts,
        offenders=[
            f"{finding.invariant.name}: {bad}: {bad.detail}"
            for finding in findings
            for bad in finding.offenders
        ],
        survivors=monkey.survivors,
        missed=monkey.missed,
        strays={},
        output="",
        server_log="",
        open_at_end=open_at_end,
    )
