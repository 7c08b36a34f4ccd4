"""Orders of things that chance seldom brings: each is told by hand, rule by rule, and looked at after each rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.worker.database import flush_sql
from tests.model.machine import Protocol

A, B, C = ["do", "a", 0], ["do", "b", 0], ["do", "c", 0]
RED = ["wait", "red", None]
NAP = ["sleep", 40]
BLINK = ["sleep", 0.15]

TALES: dict[str, Callable[[Teller], None]] = {}


class Untold(Exception):
    """The tale cannot go on as it is told; that breaks no promise."""


class Teller:
    """Applies rules to a simulation. Worker 0 is the one in trouble, 1 another, 2 the one for lone instances."""

    def __init__(self, protocol: type[Protocol]) -> None:
        self.machine = protocol()

    def start(self, *program: Any) -> None:
        self._do(self.machine.begin, program=list(program))

    def another(self, *program: Any) -> None:
        self._do(self.machine.start, program=list(program), is_hurried=False)

    def start_hurried(self, *program: Any) -> None:
        """Start one whose time is up after 30 seconds, beside one that ends at once."""
        self._do(self.machine.begin, program=[["progress", "done"]])
        self._do(self.machine.start, program=list(program), is_hurried=True)

    def send(self, type: str = "red") -> None:
        self._do(self.machine.send, index=0, type=type, twice=False)

    def send_slowly(self, worker: int = 0) -> None:
        self._do(self.machine.send_slowly, index=0, type="red", worker=worker, count=2)

    def pause(self) -> None:
        self._do(self.machine.steer, index=0, action="pause")

    def resume(self) -> None:
        self._do(self.machine.steer, index=0, action="resume")

    def terminate(self) -> None:
        self._do(self.machine.steer, index=0, action="terminate")

    def restart(self, *, from_step: int | None = None) -> None:
        """Restart the first one, from the start or from a step, by its place."""
        self._do(self.machine.restart, index=0, choice=from_step or 0, from_start=from_step is None)

    def delete(self) -> None:
        self._do(self.machine.delete, index=0)

    def claim(self, worker: int = 0) -> None:
        self._do(self.machine.turn, worker=worker, what="claim")

    def sweep(self, worker: int) -> None:
        self._do(self.machine.turn, worker=worker, what="sweep")
        self._do(self.machine._settle, self.machine.workers[worker])

    def look(self, worker: int = 0) -> None:
        self._do(self.machine.turn, worker=worker, what="look")

    def settle(self, worker: int = 0) -> None:
        """Claim, and let the worker do all its statements; bodies go on."""
        self._do(self.machine.settle, worker=worker)

    def finish(self, worker: int = 0) -> None:
        """Let the worker do all its statements, without a claim."""
        self._do(self.machine._settle, self.machine.workers[worker])

    def work(self, worker: int = 0) -> None:
        self._do(self.machine.work, worker=worker)

    def until_flush(self, worker: int = 0) -> None:
        """Let the worker go on until its next flush is about to be sent."""
        one = self.machine.workers[worker]
        for _ in range(30):
            if flush_sql.FLUSH in one.connection.to_send:
                return
            self._do(self.machine.step, worker=worker, count=1, choice=0)
        raise Untold("there is nothing to flush")

    def one_step(self, worker: int = 0) -> None:
        """Let the next statement be done, without its answer."""
        self._do(self.machine.step, worker=worker, count=1, choice=0)

    def all_but_flushes(self, worker: int = 0) -> None:
        """Let the worker do its other statements while a flush, which came first, is on its way."""
        while self.machine.workers[worker].loop.waiting > 1:
            self._do(self.machine.step, worker=worker, count=1, choice=1)

    def end_body(self, name: str, worker: int = 0) -> None:
        one = self.machine.workers[worker]
        running = [body for body in one.bodies if body.operation.record.name == name]
        if not running:
            raise Untold(f"no body of {name} runs in worker {worker}")
        self._do(self.machine._end, one, running[0])

    def wait(self, seconds: int) -> None:
        self._do(self.machine.time_passes, seconds=seconds)

    def kill(self, worker: int = 0) -> None:
        """Kill the worker; another one sweeps."""
        self._do(self.machine.kill, worker=worker, what="die", count=0)

    def drain(self, worker: int = 0) -> None:
        self._do(self.machine.drain, worker=worker)

    def refuse(self, what: str = "records", worker: int = 0) -> None:
        self._do(self.machine.refuse, worker=worker, what=what)

    def cut(self, when: str, what: str = "flush", worker: int = 0) -> None:
        """Break a connection of the worker, before or after its next statement of that kind is done."""
        self._do(self.machine.cut, worker=worker, when=when, what=what)

    def until_reading(self, worker: int = 0) -> None:
        """Let the worker go on until it is about to look for events."""
        one = self.machine.workers[worker]
        while not one.is_reading_events:
            if one.is_quiet:
                raise Untold("there are no events to look for")
            self._do(self.machine.step, worker=worker, count=1, choice=0)

    def end(self) -> None:
        """Let faults stop, and everything finish."""
        self.machine.teardown()

    def stop(self) -> None:
        """Stop the workers, whatever state they are in."""
        self.machine.is_broken = True
        self.machine.teardown()

    def fail_body(self, name: str, worker: int = 0) -> None:
        one = self.machine.workers[worker]
        [body] = [body for body in one.bodies if body.operation.record.name == name]
        self._do(self.machine._end, one, body, ends_well=False)

    def _do(self, rule: Callable[..., None], /, *args: Any, **kwargs: Any) -> None:
        self.machine.is_broken = True
        rule(*args, **kwargs)
        self.machine.oracle.check()
        self.machine.is_broken = False


def tale(told: Callable[[Teller], None]) -> Callable[[Teller], None]:
    TALES[told.__name__] = told
    return told


# Stalled workers


@tale
def zombie_writes_after_another_worker_has_taken_over(t: Teller) -> None:
    t.start(A, B)
    t.settle()
    t.wait(31)
    t.sweep(1)
    t.finish(1)
    t.end_body("a")
    t.finish()


@tale
def zombie_writes_before_anybody_has_taken_over(t: Teller) -> None:
    t.start(A, B)
    t.settle()
    t.wait(31)
    t.sweep(2)
    t.end_body("a")
    t.finish()


@tale
def worker_claims_again_what_it_lost_and_does_not_know_it(t: Teller) -> None:
    t.start(A, B)
    t.settle()
    t.wait(31)
    t.sweep(2)
    t.settle()
    t.end_body("a")
    t.finish()


@tale
def flush_is_sent_after_its_worker_has_claimed_again(t: Teller) -> None:
    t.start(A, B)
    t.settle()
    t.end_body("a")
    t.until_flush()
    t.wait(31)
    t.sweep(2)
    t.claim()
    t.all_but_flushes()
    t.finish()


@tale
def old_stay_flushes_together_with_the_new_one(t: Teller) -> None:
    t.start(["both", A, NAP])
    t.settle()
    t.wait(31)
    t.sweep(2)
    t.claim()
    t.until_flush()
    t.end_body("a")
    t.finish()


@tale
def old_stay_flushes_while_the_new_one_waits_for_its_turn(t: Teller) -> None:
    t.start(A, B)
    t.settle()
    t.wait(31)
    t.another(C)
    t.claim()
    t.until_flush()
    t.wait(10)  # without a beat: until then it has shown by its claim that it lives
    t.wait(3)
    t.sweep(2)
    t.claim()
    t.all_but_flushes()
    t.end_body("a")
    t.finish()


@tale
def worker_writes_after_its_instance_was_terminated(t: Teller) -> None:
    t.start(A, B)
    t.settle()
    t.terminate()
    t.end_body("a")
    t.finish()


@tale
def worker_writes_after_its_instance_was_restarted(t: Teller) -> None:
    t.start(A, B)
    t.settle()
    t.restart()
    t.end_body("a")
    t.finish()


@tale
def old_body_ends_beside_that_of_the_new_generation(t: Teller) -> None:
    t.start(A, B)
    t.settle()
    t.restart()
    t.look()
    t.finish()
    t.settle()
    t.end_body("a")
    t.finish()
    t.end_body("a")
    t.finish()


@tale
def old_body_ends_beside_that_of_the_new_generation_after_a_terminate(t: Teller) -> None:
    t.start(A, B)
    t.settle()
    t.terminate()
    t.restart()
    t.settle()
    t.end_body("a")
    t.end_body("a")
    t.finish()


@tale
def answer_to_a_parking_comes_in_the_next_stay(t: Teller) -> None:
    t.start(BLINK, A)
    t.claim()
    t.until_flush()
    t.one_step()
    t.claim()
    t.all_but_flushes()
    t.finish()
    t.wait(1)
    t.finish()


@tale
def instance_is_restarted_from_a_step_and_another_worker_takes_it(t: Teller) -> None:
    t.start(A, RED, RED, B, C)
    t.send()
    t.send()
    t.settle()
    t.end_body("a")
    t.settle()
    t.end_body("b")
    t.until_flush()
    t.restart(from_step=1)
    t.work(1)
    t.finish()


@tale
def instance_is_deleted_while_a_zombie_still_writes(t: Teller) -> None:
    t.start(A)
    t.another(A)
    t.settle()
    t.end_body("a")
    t.until_flush()
    t.terminate()
    t.delete()
    t.finish()


# Claims and leases


@tale
def sender_holds_the_row_that_is_to_be_claimed(t: Teller) -> None:
    t.start(A)
    t.claim()
    t.send_slowly()
    t.finish()


@tale
def sender_holds_the_row_that_is_to_be_written(t: Teller) -> None:
    t.start(A)
    t.claim()
    t.until_flush()
    t.send_slowly()
    t.finish()


@tale
def lease_runs_out_and_nobody_sweeps(t: Teller) -> None:
    t.start(A)
    t.settle()
    t.wait(31)
    t.settle(1)


@tale
def worker_is_killed_in_a_body(t: Teller) -> None:
    t.start(A, B)
    t.settle()
    t.kill()
    t.finish(1)


@tale
def worker_sweeps_beside_a_living_one(t: Teller) -> None:
    t.start(A)
    t.settle()
    t.sweep(1)


@tale
def worker_is_killed_while_its_instance_is_to_pause(t: Teller) -> None:
    t.start(A, B)
    t.settle()
    t.pause()
    t.kill()
    t.finish(1)


# Parking, events and time


@tale
def event_comes_while_the_instance_parks(t: Teller) -> None:
    t.start(RED)
    t.claim()
    t.until_flush()
    t.send()
    t.finish()


@tale
def event_comes_while_the_instance_is_parked(t: Teller) -> None:
    t.start(RED)
    t.settle()
    t.send()
    t.settle()


@tale
def event_comes_after_a_time_out_and_before_the_next_wait_is_recorded(t: Teller) -> None:
    t.start(["wait", "red", 2], ["wait", "red", 35])
    t.settle()
    t.wait(3)
    t.claim()
    t.until_flush()
    t.send()
    t.finish()


@tale
def event_comes_in_time_and_its_worker_is_not_told(t: Teller) -> None:
    t.start(["both", ["wait", "red", 2], A])
    t.settle()
    t.send()
    t.wait(3)
    t.finish()


@tale
def body_ends_shortly_before_a_sleep(t: Teller) -> None:
    t.start(["both", ["sleep", 3], A])
    t.settle()
    t.wait(2)
    t.end_body("a")
    t.finish()


@tale
def time_is_up_while_a_body_runs(t: Teller) -> None:
    t.start_hurried(["both", A, RED], B)
    t.settle()
    t.wait(31)
    t.finish()
    t.end_body("a")
    t.finish()


@tale
def time_is_up_while_nobody_has_the_instance(t: Teller) -> None:
    t.start_hurried(["both", A, NAP], B)
    t.settle()
    t.kill()
    t.wait(31)
    t.sweep(1)


# Pausing


@tale
def pause_comes_before_the_next_step_is_recorded(t: Teller) -> None:
    t.start(A, B)
    t.settle()
    t.pause()
    t.end_body("a")
    t.finish()


@tale
def pause_comes_before_a_retry_is_recorded(t: Teller) -> None:
    t.start(A)
    t.settle()
    t.pause()
    t.fail_body("a")
    t.finish()


@tale
def pause_comes_before_a_wait_takes_the_event_that_is_there(t: Teller) -> None:
    t.start(A, RED)
    t.send()
    t.settle()
    t.pause()
    t.end_body("a")
    t.finish()


@tale
def pause_comes_before_a_wait_takes_the_event_that_is_there_and_a_step_follows(t: Teller) -> None:
    t.start(A, RED, B)
    t.send()
    t.settle()
    t.pause()
    t.end_body("a")
    t.finish()


@tale
def pause_comes_before_the_end_of_a_handler_that_leaves_a_step_open(t: Teller) -> None:
    t.start(A, ["forget", B], ["progress", "done"])
    t.settle()
    t.pause()
    t.end_body("a")
    t.finish()


@tale
def pause_comes_between_the_start_of_a_wait_and_its_event(t: Teller) -> None:
    t.start(["both", RED, A])
    t.claim()
    t.until_flush()
    t.send()
    t.look()
    t.all_but_flushes()
    t.one_step()
    t.pause()
    t.finish()


@tale
def pause_comes_before_a_step_that_is_complete_at_once_is_recorded(t: Teller) -> None:
    t.start(["both", ["then", A, ["progress", "done"]], B])
    t.settle()
    t.pause()
    t.end_body("a")
    t.end_body("b")
    t.finish()


@tale
def pause_leaves_out_a_wait_that_has_its_event_since(t: Teller) -> None:
    """The flush that is on its way leaves the wait out, and its outcome is delivered before that is known."""
    t.start(["both", A, ["then", B, RED]], C)
    t.settle()
    t.end_body("b")
    t.until_flush()
    t.send()
    t.look()
    t.all_but_flushes()
    t.pause()
    t.end_body("a")
    t.finish()


@tale
def pause_is_withdrawn_while_the_instance_leaves(t: Teller) -> None:
    t.start(A, B)
    t.settle()
    t.pause()
    t.look()
    t.finish()
    t.end_body("a")
    t.until_flush()
    t.resume()
    t.finish()


@tale
def worker_stops_while_its_instance_is_to_pause(t: Teller) -> None:
    t.start(A, B)
    t.settle()
    t.pause()
    t.drain()
    t.finish()


@tale
def worker_stops_before_a_retry_is_recorded_that_a_pause_leaves_out(t: Teller) -> None:
    t.start(A)
    t.settle()
    t.pause()
    t.fail_body("a")
    t.drain()
    t.finish()


@tale
def race_is_lost_before_its_start_is_recorded_that_a_pause_leaves_out(t: Teller) -> None:
    t.start(["race", ["then", A, B], ["then", ["sleep", 3], ["progress", "done"]]], C)
    t.settle()
    t.pause()
    t.wait(3)
    t.end_body("a")
    t.finish()


@tale
def pause_comes_before_a_lost_attempt_is_recorded(t: Teller) -> None:
    t.start(A)
    t.settle()
    t.kill()
    t.until_flush(1)
    t.pause()
    t.one_step(1)
    t.finish(1)
    t.resume()
    t.work(1)


@tale
def sleeper_is_paused_and_resumed(t: Teller) -> None:
    t.start(NAP)
    t.settle()
    t.pause()
    t.wait(31)
    t.resume()
    t.work()
    t.wait(20)
    t.work()


# Steps and their attempts


@tale
def losing_branch_of_a_race_ends_late(t: Teller) -> None:
    t.start(["race", A, B], C)
    t.settle()
    t.end_body("a")
    t.finish()
    t.end_body("b")
    t.finish()


@tale
def instance_parks_between_steps(t: Teller) -> None:
    t.start(A, ["sleep", 3], B, ["progress", "half"], ["progress", "nearly"])
    t.work()
    t.wait(10)
    t.work()


@tale
def branches_end_in_another_order_than_they_began(t: Teller) -> None:
    t.start(["both", ["then", A, C], ["then", B, C]])
    t.settle()
    t.end_body("b")
    t.finish()
    t.end_body("a")
    t.finish()
    t.kill()
    t.work(1)


@tale
def database_refuses_what_a_wait_has_received(t: Teller) -> None:
    t.start(["both", ["wait", "red", 35], A])
    t.settle()
    t.send()
    t.look()
    t.until_flush()
    t.refuse()
    t.finish()


@tale
def database_refuses_what_a_body_has_returned(t: Teller) -> None:
    t.start(["both", A, B])
    t.settle()
    t.end_body("a")
    t.until_flush()
    t.refuse()
    t.finish()


@tale
def database_refuses_what_comes_after_a_loss(t: Teller) -> None:
    t.start(A, B)
    t.settle()
    t.kill()
    t.until_flush(1)
    t.refuse(worker=1)
    t.finish(1)


@tale
def database_refuses_the_end_too(t: Teller) -> None:
    t.start(A, B)
    t.settle()
    t.end_body("a")
    t.until_flush()
    t.refuse()
    t.one_step()
    t.until_flush()
    t.refuse()
    t.finish()
    t.look()
    t.finish()


@tale
def flush_is_cancelled(t: Teller) -> None:
    t.start(["both", A, B])
    t.settle()
    t.end_body("a")
    t.until_flush()
    t.refuse("flush")
    t.end_body("b")
    t.finish()


@tale
def look_for_events_is_refused(t: Teller) -> None:
    t.start(["both", RED, A])
    t.settle()
    t.send()
    t.look()
    t.until_reading()
    t.refuse("reading")
    t.finish()


@tale
def event_comes_behind_a_page_of_others(t: Teller) -> None:
    t.start(RED)
    t.settle()
    for _ in range(3):
        t.send("blue")
    t.send("red")
    t.settle()


@tale
def event_comes_after_a_claim_whose_answer_is_slow(t: Teller) -> None:
    t.start(["both", ["wait", "red", 10], ["sleep", 3]])
    t.settle()
    t.wait(3)
    t.claim()
    t.one_step()
    t.send()
    t.wait(10)
    t.finish()


# Broken connections


@tale
def connection_breaks_before_a_start_is_recorded(t: Teller) -> None:
    t.start(A)
    t.cut("before")
    t.settle()


@tale
def connection_breaks_before_a_flush_is_done(t: Teller) -> None:
    t.start(A, B)
    t.cut("before")
    t.settle()
    t.end_body("a")
    t.cut("before")
    t.finish()


@tale
def connection_breaks_after_a_step_was_started(t: Teller) -> None:
    t.start(A, B)
    t.cut("after")
    t.settle()
    t.end_body("a")
    t.cut("after")
    t.finish()


@tale
def connection_breaks_after_a_step_was_started_and_a_pause_comes(t: Teller) -> None:
    t.start(A, B)
    t.claim()
    t.until_flush()
    t.cut("after")
    t.one_step()
    t.pause()
    t.finish()


@tale
def connection_breaks_after_a_pause_has_left_out_a_start(t: Teller) -> None:
    t.start(A, B)
    t.settle()
    t.pause()
    t.end_body("a")
    t.until_flush()
    t.cut("after")
    t.one_step()
    t.resume()
    t.finish()


@tale
def connection_breaks_after_the_instance_has_left_and_come_back(t: Teller) -> None:
    t.start(RED, A)
    t.claim()
    t.until_flush()
    t.cut("after")
    t.one_step()
    t.send()
    t.claim()
    t.all_but_flushes()
    t.finish()


@tale
def connection_breaks_after_an_event_was_taken(t: Teller) -> None:
    t.start(["both", RED, A], RED)
    t.settle()
    t.send()
    t.look()
    t.cut("after")
    t.send()
    t.finish()
    t.end_body("a")


@tale
def connection_breaks_after_a_body_has_ended(t: Teller) -> None:
    t.start(["both", A, B], C)
    t.settle()
    t.end_body("a")
    t.cut("after")
    t.until_flush()
    t.one_step()
    t.end_body("b")
    t.finish()


@tale
def connection_breaks_after_a_claim(t: Teller) -> None:
    t.start(A)
    t.cut("after", "claim")
    t.claim()
    t.finish()
    t.look()
    t.settle()


@tale
def connection_breaks_while_an_instance_is_driven(t: Teller) -> None:
    t.start(A)
    t.settle()
    t.another(B)
    t.cut("after", "claim")
    t.claim()
    t.finish()
    t.look()
    t.settle()
    t.end_body("a")


@tale
def connection_breaks_while_what_was_claimed_is_read(t: Teller) -> None:
    t.start(A, ["sleep", 3], B)
    t.work()
    t.wait(3)
    t.cut("before", "history")
    t.work()
