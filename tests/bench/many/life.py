"""An instance while it is made: its steps one after another, and the rows that they leave."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from engine.values.fingerprint import Failed
from engine.values.identity import request_type
from tests.bench.many import failures, people
from tests.bench.many.flows import CHILD, MAX_ATTEMPTS, Call, Flow, plan
from tests.bench.many.lines import NULL, moment, position, stored
from tests.bench.many.timeline import Timeline

SECOND = 1_000_000
HOUR = 3600 * SECOND
CLAIM = 4_000  # until a worker runs it
Rows = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class World:
    """What all instances share: the rows so far, keys and time, chance, and the moment until which everything is."""

    rows: Rows
    timeline: Timeline
    rng: Random
    now: int
    groups: dict[str, tuple[Failed, int]]  # with the time of the first failure of each

    def note(self, failed: Failed, at: int) -> str:
        """Keep the group of a failure, and return its fingerprint."""
        known, first = self.groups.get(failed.fingerprint, (failed, at))
        self.groups[failed.fingerprint] = known, min(first, at)
        return failed.fingerprint


@dataclass(frozen=True, slots=True)
class Parent:
    """The step that starts a child."""

    key: int
    generation: int
    seq: int


class Life:
    """One instance. Its clock goes from its creation towards the present, and never passes it."""

    def __init__(
        self, world: World, flow: Flow, created: int, parent: Parent | None = None, id: str = ""
    ) -> None:
        self.world, self.rng, self.flow, self.parent = world, world.rng, flow, parent
        self.key = world.timeline.take("engine_instance")
        self.number = 1000 + self.key
        self.id = id or f"{flow.prefix}-{self.number}"
        self.created, self.at = created, created + CLAIM
        self.generation = 1
        self.seq = self.delivery = self.fence = 0
        self.owner, self.worker = people.WORKERS[self.key % len(people.WORKERS)]
        self.steps: list[str] = []
        self.undone: list[int] = []
        self.fingerprint = NULL
        self.started_by = "" if parent else self._starter()

    # Completed steps

    def take(self, call: Call, *, is_undone: bool = False) -> None:
        """Complete a step of any kind."""
        if call.kind == "do":
            self._run(call, is_undone=is_undone)
        elif call.kind == "sleep":
            began = self._wait(6 * HOUR)
            self._step(call, "complete", began, self.at)
        elif call.kind == "event":
            self._receive(call, self.rng.choice(("warehouse", "bank", "carrier")))
        elif call.kind == "request":
            self._receive(call, self.rng.choice(people.OPERATORS))
        elif call.kind == "child":
            self._print_label(call)
        else:
            self._step(call, "complete", self.at, self.at, output=call.output)

    def fail(self, call: Call, kind: failures.Kind, attempts: int) -> str:
        """Fail a body so many times, each after a back-off; return the message of the last error."""
        message = ""
        for number in range(1, attempts + 1):
            message = kind.message(self.number + number, self.rng)
            error = failures.of_attempt(kind, message, call.name, number)
            began = self._pass(600 * SECOND if kind.status == "timed_out" else 5 * SECOND)
            group = failures.group_of(kind, message, self.flow.name, call.name)
            self.fingerprint = self.world.note(group, self.at)
            self._attempt(self.seq + 1, number, kind.status, began, self.at, error, has_failed=True)
            if number < attempts:
                self._pass(SECOND << (number - 1))
        return message

    def take_after_failures(self, call: Call, kind: failures.Kind, failed: int) -> None:
        """Complete a step whose first attempts have failed."""
        began = self.at
        self.fail(call, kind, failed)
        self.fence += 1
        last = self._pass(900_000)
        self._attempt(self.seq + 1, failed + 1, "complete", last, self.at)
        lost = failed if kind.status == "lost" else 0
        self._step(
            call, "complete", began, self.at, output=self._output(call), attempts=failed + 1, lost=lost
        )

    def give_up(self, call: Call, kind: failures.Kind) -> str:
        """Fail a step for good; return the error of the instance."""
        began, attempts = self.at, 1 if kind.is_final else MAX_ATTEMPTS
        message = self.fail(call, kind, attempts)
        error = failures.of_attempt(kind, message, call.name, attempts)
        self._step(call, "errored", began, self.at, error=error, attempts=attempts)
        self.fence += attempts - 1
        return failures.of_instance(kind, message, self.flow.name, call.name, attempts)

    def undo(self) -> None:
        """Run the rollbacks of the steps that were recorded as rolled back, the last first."""
        for seq in reversed(self.undone):
            began = self._pass(400_000)
            self._attempt(seq, 1, "complete", began, self.at, phase="rollback")

    # Open steps

    def hold(self, call: Call) -> None:
        """Let a body run."""
        began = self.at
        self._attempt(self.seq + 1, 1, "running", began, None)
        self._step(call, "running", began, attempts=1)

    def back_off(self, call: Call, kind: failures.Kind, failed: int, due: int) -> None:
        """Let a step wait for its next attempt."""
        began = self.at
        self.fail(call, kind, failed)
        self._step(call, "waiting", began, attempts=failed, wake=due)

    def park(self, call: Call, due: int | None) -> None:
        """Let a step wait: for its end, an event, or an answer."""
        self._step(
            call, "waiting", self.at, types=self._types(call), wake=due, is_fixed=call.kind == "request"
        )

    def wait_for_child(self, call: Call) -> None:
        """Let a step wait for a child that itself waits."""
        child, began = self._child(), self.at
        self._step(call, "waiting", began, options=_child_options(child.id))
        for one in child.calls(3)[:-1]:
            child.take(one)
        child.park(child.calls(3)[-1], None)
        child.close("waiting", waiting_for="event")

    def cancel(self, call: Call, at: int) -> None:
        """End a waiting step with its instance."""
        self._step(call, "cancelled", self.at, at, types=self._types(call), is_fixed=call.kind == "request")
        self.at = at

    # The instance

    def calls(self, length: int) -> tuple[Call, ...]:
        return plan(self.flow, length)

    def restart(self, failed: int, error: str) -> None:
        """Begin the next generation with the steps before the failed one, which are its first `failed` ones."""
        generations = self.world.rows["engine_generation"]
        key = self.world.timeline.take("engine_generation")
        generations.append(
            f"{key}\t{self.key}\t1\terrored\t{error}\t\t{self.flow.code}\t"
            f"{moment(self.created + CLAIM)}\t{moment(self.at)}\n"
        )
        target = self.steps[failed].split("\t")
        self._pass(20 * HOUR)
        name, count = target[_NAME], target[_COUNT]
        data = f'{{"generation":2,"from_step":"{name}","count":{count},"kind":"do","kept":{failed}}}'
        self.audit("restart", self.rng.choice(people.OPERATORS), self.at, "errored", "queued", data=data)
        self.generation, self.seq, self.delivery = 2, failed, failed
        self.fence += 2
        for line in self.steps[:failed]:
            fields = line.split("\t")
            fields[_GENERATION], fields[_KEPT_FROM] = "2", "1"
            self.steps.append("\t".join(fields))

    def close(
        self,
        status: str,
        *,
        waiting_for: str = "",
        wake: int | None = None,
        output: str = NULL,
        error: str = NULL,
        pause_reason: str = NULL,
        is_held: bool = False,
        ended: bool = False,
    ) -> None:
        """Write the rows of the instance in the state that it has now."""
        rows, parent = self.world.rows, self.parent
        tie = (
            f"{parent.key}\t{parent.generation}\t{parent.seq}\tt\t1"
            if parent
            else f"{NULL}\t{NULL}\t{NULL}\tf\t0"
        )
        started = self.created + CLAIM if self.steps else None
        rollback = "complete" if self.undone else ""
        rows["engine_instance"].append(
            f"{self.key}\t{self.flow.name}\t{self.id}\t{self.generation}\t{status}\t{waiting_for}\t{rollback}\t"
            f"{people.params(self.rng, self.number)}\t{output}\t{error}\t{pause_reason}\t"
            f"{self.fingerprint}\t{people.tags(self.rng)}\t{self.started_by}\t{self.flow.code}\t{moment(wake)}\t"
            f"{self.owner if is_held else NULL}\t{self.fence + 1 if self.steps else 0}\t{tie}\t"
            f"{moment(self.created)}\t{moment(started)}\t"
            f"{moment(self.at) if status == 'paused' else NULL}\t{moment(self.at) if ended else NULL}\n"
        )
        rows["engine_step"] += self.steps
        if self.started_by:
            self.audit("start", self.started_by, self.created, "", "queued")

    def audit(
        self, verb: str, actor: str, at: int, before: str, after: str, reason: str = "", data: str = NULL
    ) -> None:
        rest = (
            f"{moment(at)}\t{verb}\t{actor}\t\t{self.flow.name}\t{self.id}\t{self.key}\t{before}\t{after}\tdone\t"
            f"{reason}\t{data}"
        )
        self.world.timeline.add("engine_audit", at, rest)

    def receive(
        self, type: str, payload: str, sender: str, at: int, consumed_by: int | None, key: str = NULL
    ) -> None:
        """Write an event that a wait has consumed, or none yet."""
        state = "buffered" if consumed_by is None else "consumed"
        consumer = f"{NULL}\t{NULL}" if consumed_by is None else f"{self.generation}\t{consumed_by}"
        rest = f"{self.key}\t{type}\t{payload}\t{key}\t{sender}\t{moment(at)}\t{state}\t{consumer}"
        self.world.timeline.add("engine_event", at, rest)

    # Helpers

    def _run(self, call: Call, *, is_undone: bool) -> None:
        began = self._pass(900_000)
        self._attempt(self.seq + 1, 1, "complete", began, self.at)
        undone = "complete" if is_undone and call.is_undone else ""
        self._step(call, "complete", began, self.at, output=self._output(call), attempts=1, rollback=undone)
        if undone:
            self.undone.append(self.seq)

    def _receive(self, call: Call, sender: str) -> None:
        began = self._wait(4 * HOUR)
        seq, is_request = self.seq + 1, call.kind == "request"
        event = request_type(self.generation, seq) if is_request else call.event
        payload = '{"value":true,"comment":""}' if is_request else f'{{"reference":"{self.number:x}"}}'
        output = (
            f'{{"type": "{event}", "sent_by": "{sender}", "received_us": {self.at}, "payload": {payload}}}'
        )
        self._step(call, "complete", began, self.at, types=f"{{{event}}}", is_fixed=is_request, output=output)
        self.receive(event, payload, sender, self.at, seq, event if is_request else NULL)
        data = f'{{"type":"{event}"}}'
        if is_request:
            data = f'{{"request":"{call.name}","seq":{seq},"generation":{self.generation}}}'
        self.audit("answer" if is_request else "send_event", sender, self.at, "waiting", "waiting", data=data)

    def _print_label(self, call: Call) -> None:
        child, began = self._child(), self.at
        for one in child.calls(2):
            child.take(one)
        output = f'"JD{child.number:x}"'
        child.close("complete", output=output, ended=True)
        self.at = child.at
        self.fence += 1
        self._step(call, "complete", began, self.at, output=output, options=_child_options(child.id))

    def _child(self) -> Life:
        parent = Parent(self.key, self.generation, self.seq + 1)
        return Life(self.world, CHILD, self.at, parent, f"{self.id}-{self.rng.getrandbits(64):016x}")

    def _types(self, call: Call) -> str:
        if call.kind == "request":
            return f"{{{request_type(self.generation, self.seq + 1)}}}"
        return f"{{{call.event}}}" if call.event else NULL

    def _starter(self) -> str:
        if self.flow.schedule:
            return f"schedule {self.flow.schedule}"
        return self.rng.choice(people.STARTERS) if self.rng.random() < 0.2 else ""

    def _output(self, call: Call) -> str:
        return call.output % (self.number * 16 + self.seq, self.key % 9973)

    def _pass(self, most: int) -> int:
        """Let some time pass, and return when that began."""
        began = self.at
        self.at = began + int(self.rng.random() * min(most, (self.world.now - began) >> 4))
        return began

    def _wait(self, most: int) -> int:
        """Pass time while no worker holds the instance."""
        self.fence += 1
        return self._pass(most)

    def _step(
        self,
        call: Call,
        status: str,
        started: int,
        finished: int | None = None,
        *,
        options: str = "",
        attempts: int = 0,
        lost: int = 0,
        types: str = NULL,
        wake: int | None = None,
        is_fixed: bool = False,
        output: str = NULL,
        error: str = NULL,
        rollback: str = "",
    ) -> None:
        self.seq += 1
        delivery: int | str = NULL
        if status in ("complete", "errored"):
            self.delivery = delivery = self.delivery + 1
        self.steps.append(
            f"{self.key}\t{self.generation}\t{self.seq}\t{call.identity}\t{status}\t{delivery}\t"
            f"{options or call.options}\t{attempts}\t{lost}\t{types}\t{moment(wake)}\t{'t' if is_fixed else 'f'}\t"
            f"{output}\t{error}\t{rollback}\t{NULL}\t{moment(started)}\t{moment(finished)}\n"
        )

    def _attempt(
        self,
        seq: int,
        number: int,
        status: str,
        started: int,
        finished: int | None,
        error: str = NULL,
        phase: str = "do",
        *,
        has_failed: bool = False,
    ) -> None:
        failed = f"{self.fingerprint}\t{moment(finished)}" if has_failed else f"{NULL}\t{NULL}"
        self.world.rows["engine_attempt"].append(
            f"{self.key}\t{self.generation}\t{seq}\t{phase}\t{number}\t{status}\t{self.worker}\t{error}\t"
            f"{moment(started)}\t{moment(finished)}\t{failed}\n"
        )


def _child_options(id: str) -> str:
    return stored(f'{{"operation": "run_workflow", "workflow": "{CHILD.name}", "id": "{id}"}}')


_GENERATION, _NAME, _COUNT, _KEPT_FROM = (
    position("engine_step", column) for column in ("generation", "name", "count", "kept_from")
)
