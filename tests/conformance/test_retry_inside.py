"""Retry a step with finished items, branches or nested steps inside: they do not run again (guarantees 8 and 14)."""

from __future__ import annotations

from collections import Counter

import pytest

from engine import StepContext, WorkflowStep, branch, workflow
from engine.models import Attempt, Audit, Instance, Step
from engine.restart import preview_retry
from tests.conformance.test_exhausted import paused
from tests.conformance.test_retry_step import ended

pytestmark = pytest.mark.usefixtures("nothing_is_violated")


class Shop:
    """Ships parcels, except some for as long as it is down. Remembers how often each was tried, and the keys."""

    def __init__(self, *broken: int) -> None:
        self.broken = set(broken)
        self.tried: Counter[int] = Counter()
        self.keys: dict[int, set[str]] = {}

    def ship(self, ctx: StepContext, number: int) -> str:
        self.tried[number] += 1
        self.keys.setdefault(number, set()).add(ctx.idempotency_key)
        if number in self.broken:
            raise ConnectionError(f"Parcel {number} cannot be shipped.")
        return f"shipped {number}"


def attempts(instance: Instance) -> int:
    return Attempt.objects.filter(instance=instance, generation=instance.generation).count()


@pytest.mark.parametrize("concurrency", [1, 3, 10])
def test_finished_items_of_a_map_do_not_run_again(concurrency: int) -> None:
    shop = Shop(3)

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        async def one(ctx: StepContext, item: int, index: int) -> str:
            return shop.ship(ctx, item)

        await step.do("prepare", lambda: None)
        return await step.map(
            "ship", [0, 1, 2, 3, 4, 5], one, concurrency=concurrency, max_attempts=2, delay=0
        )

    instance = ended(story.start())
    done = [number for number, times in shop.tried.items() if number != 3]
    assert (instance.status, shop.tried[3], set(shop.tried.values()) <= {1, 2}) == ("errored", 2, True)
    plan = preview_retry(instance)
    assert ([str(one) for one in plan.keeps], [str(one) for one in plan.runs_again]) == (
        ['do "prepare"'],
        ['map "ship"'],
    )
    assert plan.kept_inside == len(done) >= 3
    shop.broken.clear()
    instance.retry_step()
    ended(instance)
    assert (instance.status, instance.output) == ("complete", [f"shipped {number}" for number in range(6)])
    assert [shop.tried[number] for number in range(6)] == [1, 1, 1, 3, 1, 1]
    assert all(len(keys) == 1 for keys in shop.keys.values())
    kept = Step.objects.of(instance).filter(name="ship", kept_from=1, kind="do")
    assert sorted(kept.values_list("count", flat=True)) == [number + 1 for number in sorted(done)]
    entry = Audit.objects.get(instance_key=instance.key, verb="restart")
    assert entry.data["kept_inside"] == len(done)


def test_an_item_that_fails_again_has_had_all_its_attempts_and_can_be_retried_again() -> None:
    shop = Shop(1)

    @workflow
    async def story(step: WorkflowStep) -> None:
        async def one(ctx: StepContext, item: int, index: int) -> None:
            shop.ship(ctx, item)

        await step.for_each("ship", [0, 1, 2], one, concurrency=1, max_attempts=2, delay=0)

    instance = ended(story.start())
    instance.retry_step()
    assert ended(instance).status == "errored"
    assert (attempts(instance), preview_retry(instance).kept_inside) == (2, 1)
    shop.broken.clear()
    instance.retry_step()
    assert ended(instance).status == "complete"
    assert (instance.generation, shop.tried) == (3, Counter({0: 1, 1: 5, 2: 1}))
    assert Step.objects.of(instance).get(name="ship", kind="do", count=1).kept_from == 1


def test_finished_nested_steps_do_not_run_again() -> None:
    shop = Shop(2)

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        async def order() -> list[str]:
            return [
                await step.do(f"ship {number}", shop.ship, number, max_attempts=1) for number in (1, 2, 3)
            ]

        return await step.do("order", order, max_attempts=2, delay=0)

    instance = ended(story.start())
    assert (instance.status, shop.tried, preview_retry(instance).kept_inside) == (
        "errored",
        Counter({1: 1, 2: 1}),
        1,
    )
    shop.broken.clear()
    instance.retry_step()
    assert ended(instance).output == ["shipped 1", "shipped 2", "shipped 3"]
    assert shop.tried == Counter({1: 1, 2: 2, 3: 1})
    assert all(len(keys) == 1 for keys in shop.keys.values())
    outer = Step.objects.of(instance).get(name="order")
    assert (outer.attempts, outer.kept_from, attempts(instance)) == (1, None, 3)


def test_what_an_item_has_finished_inside_does_not_run_again_either() -> None:
    shop = Shop(12)

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        async def one(item: int, index: int) -> str:
            await step.do("first", shop.ship, item)
            return await step.do("second", shop.ship, item + 2, max_attempts=1)

        return await step.map("ship", [0, 10, 20], one, concurrency=1, max_attempts=1)

    instance = ended(story.start())
    assert (instance.status, shop.tried) == ("errored", Counter({0: 1, 2: 1, 10: 1, 12: 1}))
    assert preview_retry(instance).kept_inside == 2  # the item 0, and what the item 10 has finished
    shop.broken.clear()
    instance.retry_step()
    assert ended(instance).output == ["shipped 2", "shipped 12", "shipped 22"]
    assert shop.tried == Counter({0: 1, 2: 1, 10: 1, 12: 2, 20: 1, 22: 1})


def test_complete_branches_are_not_started_again_unless_they_were_compensated() -> None:
    shop, undone = Shop(1), []

    @workflow
    async def parcel(step: WorkflowStep, number: int) -> str:
        return await step.do("ship", shop.ship, number, max_attempts=1)

    @workflow
    async def late(step: WorkflowStep, number: int) -> str:
        await step.sleep("wait", "1s")
        return await step.do("ship", shop.ship, number, max_attempts=1)

    @workflow
    async def back(step: WorkflowStep, about: dict[str, object]) -> None:
        undone.append(about["branch"])

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        return await step.parallel(
            "parcels",
            branch(parcel, 0),
            branch(late, 1),
            branch(parcel, 2, compensate_with=back),
        )

    instance = ended(story.start())
    assert (instance.status, undone) == ("errored", ["parcel"])
    assert preview_retry(instance).kept_inside == 1
    shop.broken.clear()
    instance.retry_step()
    assert ended(instance).output == ["shipped 0", "shipped 1", "shipped 2"]
    assert (shop.tried, undone) == (Counter({0: 1, 1: 2, 2: 2}), ["parcel"])


def test_a_step_that_was_retried_before_its_end_gets_all_its_attempts_again() -> None:
    shop = Shop(2)

    @workflow
    async def story(step: WorkflowStep) -> str:
        async def order() -> str:
            await step.do("first", shop.ship, 1)
            return await step.do("second", shop.ship, 2, max_attempts=1)

        return await step.do("order", order, max_attempts=1, on_exhausted="pause")

    instance = paused(story.start())
    instance.retry_step()
    paused(instance)
    instance.fail_step("order")
    assert ended(instance).status == "errored"
    instance.retry_step()
    paused(instance)
    assert Attempt.objects.filter(instance=instance, generation=2, step_seq=1).count() == 1
    shop.broken.clear()
    instance.retry_step()
    assert ended(instance).output == "shipped 2"
    assert (shop.tried[1], shop.tried[2]) == (1, 4)


def test_a_restart_from_the_step_keeps_nothing_inside_it() -> None:
    shop = Shop(1)

    @workflow
    async def story(step: WorkflowStep) -> None:
        async def one(ctx: StepContext, item: int, index: int) -> None:
            shop.ship(ctx, item)

        await step.for_each("ship", [0, 1], one, concurrency=1, max_attempts=1)

    instance = ended(story.start())
    shop.broken.clear()
    instance.restart("ship", kind="map", keys="same")
    assert ended(instance).status == "complete"
    assert shop.tried == Counter({0: 2, 1: 2})
