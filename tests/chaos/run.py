"""A run from its beginning to its end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from engine.invariants import INVARIANTS, look
from tests.chaos.case import Case, End, deaths
from tests.chaos.evidence import Evidence
from tests.chaos.ground import Ground
from tests.chaos.kills import SURVIVE_SECONDS
from tests.chaos.monkey import Monkey
from tests.chaos.plan import DRAIN_LIMIT, Plan
from tests.chaos.record import Record
from tests.chaos.sockets import counts_text
from tests.chaos.stories import Story, stories

ENGINE_CLIENTS = 3  # and one at the Studio of each machine
VISITORS = 4  # at each machine, and as many pages that stay open
GRACE = 15.0
STALE_SECONDS = 10.0
BEGIN_IN = 0.5
BURST_SECONDS = 30.0
TAIL, BURST_STEPS = 20, 5
# So much of what the machine does without faults is asked of it with them: each kill costs as much again.
SHARE_OF_CAPACITY = 0.2
BODIES_AN_INSTANCE = 5.5


def run(plan: Plan, home: Path) -> Case:
    ground = Ground(home, plan)
    with ground.opened():
        calibrated = burst(ground, "c", 60 if plan.is_short else 200) or 0.0
        plan = plan.at_rate(min(plan.rate, calibrated * SHARE_OF_CAPACITY / BODIES_AN_INSTANCE))
        began = time.monotonic() + BEGIN_IN
        begin_load(ground, plan, began)
        monkey = Monkey(ground, plan, began)
        monkey.run()
        end = drain(ground, monkey)
        with ground.connect() as connection:
            record = Record.read(connection, time.time() - time.monotonic())
            findings = [look(connection.cursor(), one, grace=GRACE) for one in INVARIANTS]
    lines = ground.ledger.lines()
    return Case(
        plan=plan,
        calibrated=calibrated,
        stories=with_children(stories(plan.seed, plan.instances, plan.rate, plan.longest), record),
        evidence=Evidence(lines, deaths(monkey.faults, lines)).judged(monkey.faults),
        record=record,
        findings=findings,
        monkey=monkey,
        end=end,
        strays=ground.strays,
        output=ground.outputs(),
        server_log=ground.server_log,
    )


def with_children(told: list[Story], record: Record) -> dict[str, Story]:
    """Return the stories by instance, and those of the children that the record has."""
    found = {story.id: story for story in told}
    born = [row for row in record.instances.values() if row.parent in found]
    return found | {row.id: found[row.parent].of_child(row.id, row.called) for row in born}


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
    ground.clients.start("sweeper", **told)
    many = 1 if plan.is_short else VISITORS
    watchers = {f"{one['machine']}-{turn}": one for one in browsers for turn in range(many)}
    ground.clients.start("visitors", browsers=browsers * many, watchers=watchers)


def drain(ground: Ground, monkey: Monkey) -> End:
    """Wait until the clients have done what they owe and nothing is open, then see whether new work is done."""
    end = End(load_ended=time.monotonic())
    while (left := owed(ground)) and time.monotonic() < end.load_ended + DRAIN_LIMIT:
        monkey.settle(0.25)
    end.left = left
    end.drained = None if left else time.monotonic() - end.load_ended
    monkey.settle(SURVIVE_SECONDS + 0.5)  # until the last deaths are checked
    speed = burst(ground, "t", TAIL)
    end.tail = speed and TAIL * BURST_STEPS / speed
    end.stale = stale_pages(ground)
    monkey.watch.sample()
    ground.end_clients()
    return end


def owed(ground: Ground) -> list[str]:
    """Return what is not done yet."""
    done = len(ground.ledger.lines(what="done"))
    clients = ENGINE_CLIENTS + len(ground.machines) + 1  # the sweeper
    return still_open(ground) + [f"{clients - done} clients have something to do"] * (done < clients)


def stale_pages(ground: Ground) -> list[str]:
    """Return the open pages that do not show what the database says, also not after a few seconds."""
    query = "SELECT status, count(*) FROM engine_instance GROUP BY status"
    ends_at = time.monotonic() + STALE_SECONDS
    while True:
        with ground.connect() as connection:
            rows = connection.execute(query).fetchall()
        wanted = counts_text(dict(rows))
        shown = {line.instance: line.step for line in ground.ledger.lines(what="shown")}
        stale = [f"{name} shows {text}, not {wanted}" for name, text in shown.items() if text != wanted]
        if not stale or time.monotonic() > ends_at:
            return stale
        time.sleep(0.2)


def still_open(ground: Ground) -> list[str]:
    query = (
        "SELECT concat_ws(' ', id, status, waiting_for, wake_at - clock_timestamp(), quarantined) FROM engine_instance "
        "WHERE status NOT IN ('complete', 'errored', 'terminated') LIMIT 100"
    )
    with ground.connect() as connection:
        return [str(row[0]) for row in connection.execute(query).fetchall()]
