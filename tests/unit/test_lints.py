"""Each lint finds its mistakes, and is silent about code that only looks like them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from engine.lints.code import Code, Facts
from engine.lints.rules import RULES
from engine.lints.source import Source
from tests.unit.lints import check

ROOT = Path(__file__).parents[2]
OURS = sorted(
    file
    for pattern in (
        "studio/demo/*/workflow.py",
        "tests/*/workflows.py",
        "tests/*/*/workflows.py",
        "tests/golden/*.py",
    )
    for file in ROOT.glob(pattern)
)


def test_a_workflow_that_nobody_declares_is_an_error_where_it_is_named() -> None:
    """LC-46"""
    found = check("""
        import engine
        from engine import branch, workflows as all_of_them

        async def handler(step, params: str):
            await step.run_workflow("a", "ship-oder", 1)  #! E101
            await step.spawn("b", workflow="bill")  #! E101
            await step.parallel("c", branch("send-bil", 1), engine.branch("x"))  #! E101 E101
            await step.parallel("d", branch("send-bill", compensate_with="undo"))  #! E101
            await step.do("e", lambda: all_of_them["typo"].start())  #! E101
            await step.do("f", lambda: all_of_them.get("typo").start())  #! E101
            await step.wait_for_instance("g", workflow="typo", id="1")  #! E101
    """)
    assert found[0].message == 'No workflow is called "ship-oder": this raises `UnknownWorkflowError`.'
    assert found[0].hint == 'Did you mean "ship-order"?'


def test_known_workflows_and_names_that_only_run_time_knows_are_not_judged() -> None:
    """LC-46"""
    check("""
        from engine import branch, workflows
        from shop import ship_order, branch as limb

        async def handler(step, params: str):
            await step.run_workflow("a", "ship-order", 1)
            await step.spawn("b", ship_order)
            await step.spawn("c", params)
            await step.parallel("d", branch(params), limb("typo"), *[branch(f"ship-{n}") for n in params])
            await step.do("e", lambda: workflows[params].start())
            mine = {"typo": 1}
            return mine["typo"], params.get("typo")
    """)


def test_a_step_name_that_is_used_twice_in_one_run_is_a_warning() -> None:
    """LC-04"""
    found = check("""
        async def handler(step):
            await step.do("charge", print)
            await step.sleep("charge", 1)
            if await step.do("is-late", bool):
                await step.do("charge", print)  #! W103
            await gather(step.do("fetch", a), step.do("fetch", b))  #! W103
            try:
                await step.do("pay", card)
            except StepError:
                await step.do("pay", cash)  #! W103
            await step.wait_for_event("packed")
            await step.wait_for_event("packed")  #! W103

            @step.do("charge")  #! W103
            async def again(): ...

            await again()
    """)
    assert found[0].message == (
        '"charge" is also the name of the do step on line 3. The second step also runs, and only their order '
        "distinguishes the two. If changed code swaps them or removes one, a waiting instance gets the wrong result."
    )


def test_a_repeated_name_is_told_what_step_identity_makes_of_it() -> None:
    found = check(
        """
        async def handler(step):
            await step.do("charge", print)
            await step.do("charge", print)  #! W103
            await step.do("charge", print, once=True)
        """,
        is_named_once=True,
    )
    assert found[0].message.endswith(
        'does not run: with `step_identity="name"` it returns the result of the first.'
    )


def test_names_that_no_run_uses_twice_are_none_too_many() -> None:
    """One literal in a loop is one; and of two branches a run takes one"""
    check("""
        async def handler(step, params: list):
            for item in params:
                if item.is_empty:
                    await step.do("skip", print)
                    continue
                await step.do("work", print)
                if item.is_last:
                    await step.do("skip", print)
            if params:
                await step.do("a", print)
            elif step.now():
                await step.do("a", print)
            else:
                await step.do("a", print)
            match params:
                case []:
                    await step.do("b", print)
                case _:
                    await step.do("b", print)
            given = await (step.do("c", print) if params else step.do("c", str))
            if given:
                await step.do("discard", print)
                await step.fail("It is no good.")
            try:
                await step.do("d", print)
            except ValueError:
                await step.do("e", print)
                raise
            except StepError:
                await step.do("e", print)
            else:
                await step.do("e", print)
            if not given:
                await step.do("f", print)
            if given:
                await step.do("f", print)
            await step.listen("next")
            await step.listen("next")
            with span():
                if given:
                    return await step.do("discard", print)
            while given:
                if params:
                    await step.do("g", print)
                    break
                await step.do("g", print)
            await step.do("discard", print)
    """)


def test_a_call_that_broke_out_of_a_loop_or_was_caught_meets_its_namesake_below() -> None:
    check("""
        async def handler(step, params: list):
            for item in params:
                if item:
                    await step.do("a", print)
                    break
            await step.do("a", print)  #! W103
            try:
                return await step.do("b", print)
            except StepError:
                pass
            try:
                await step.do("c", print)
                raise LookupError
            except LookupError:
                pass
            await step.do("b", print)  #! W103
            await step.do("c", print)  #! W103
    """)


def test_a_step_name_made_from_what_moves_is_an_error() -> None:
    """CC-04"""
    found = check("""
        import time, uuid
        from random import randint as roll

        async def handler(step):
            await step.do(f"charge-{time.time()}", print)  #! E104
            await step.sleep("nap-" + str(roll(1, 6)), 1)  #! E104
            tag = uuid.uuid4().hex  #! E105
            await step.do(f"tag-{tag}", print)  #! E104

            @step.do(f"{uuid.uuid1()}")  #! E104
            def body(uuid): ...
    """)
    assert found[0].message == (
        "The step name is built from `time.time()`: it differs on every replay, so the recorded step is never found "
        "and runs again."
    )
    assert found[3].message.startswith("The step name is built from `uuid.uuid4()` (line 8): ")


def test_names_from_data_or_from_the_twins_of_step_stand_still() -> None:
    """CC-04"""
    check("""
        from uuid import uuid4

        async def handler(step, params: list):
            token = await step.do("token", uuid4)
            order = await step.do("order", create, uuid4())  #! E105
            stamp = step.now().date()
            for number, item in enumerate(params):
                await step.do(f"work:{item}:{number}", print)
                await step.do(f"again:{token}:{order}:{stamp}:{step.uuid4()}:{step.random.random()}", print)
    """)


def test_clock_ids_and_chance_between_steps_are_errors_with_their_twins() -> None:
    """HC-10"""
    found = check("""
        import asyncio, os, random, secrets, time, uuid
        import datetime as dt
        from datetime import date, datetime
        from time import time as now
        from django.utils import timezone

        async def handler(step):
            id = uuid.uuid4()  #! E105
            if now() > 5 or dt.datetime.now(dt.UTC).hour > 3:  #! E105 E105
                date.today(), datetime.utcnow(), timezone.now()  #! E105 E105 E105
            await step.do("create", create, random.choice([1, 2]), secrets.token_hex())  #! E105 E105
            [os.urandom(4) for _ in "ab"]  #! E105
            random.Random().random(), time.strftime("%Y")  #! E105 E105
            time.sleep(1)  #! E105
            await asyncio.sleep(1)  #! E105
    """)
    said = {one.message.partition("()")[0][1:]: one.hint for one in found}
    assert said["uuid.uuid4"] == "Use `step.uuid4()`, or call it in the body of a step."
    assert said["datetime.datetime.now"] == "Use `step.now()`, or call it in the body of a step."
    assert said["random.choice"] == "Use `step.random`, or call it in the body of a step."
    assert said["time.sleep"] == "Use `await step.sleep(name, duration)`, which parks the instance."


def test_what_moves_may_do_so_in_bodies_and_stands_still_from_step_or_a_seed() -> None:
    """HC-10"""
    check("""
        import asyncio, datetime, functools, random, time, uuid
        from django.utils import timezone

        def charge(): return uuid.uuid4()

        async def handler(step):
            def body(): return time.time()
            async def slow(): await asyncio.sleep(1)
            draw = lambda: random.random()

            @step.do("decorated")
            async def decorated(): return datetime.datetime.now()

            await step.do("a", body)
            await step.do("b", lambda: (uuid.uuid4(), random.random()))
            await step.do("c", charge)
            await step.do("d", uuid.uuid4)
            await step.do("e", functools.partial(body), rollback=lambda ctx: time.time())
            await asyncio.gather(step.do("f", slow), decorated(), step.map("g", [1], lambda item, n: time.time()))
            await step.do("h", draw)
            random_ = step.random
            random = step.random
            step.now(), step.uuid4(), random.choice([1]), random_.random()
            await asyncio.sleep(0)
            time.strftime("%Y", step.now().timetuple()), time.gmtime(0)
            uuid.uuid5(uuid.NAMESPACE_URL, "x"), uuid.UUID(int=1), datetime.datetime(2026, 1, 1)
            return datetime.timedelta(1), timezone.localtime(step.now())
    """)


def test_a_seeded_generator_stands_still() -> None:
    check("""
        import random

        async def handler(step):
            return random.Random(4).random()
    """)


def test_writes_calls_and_mail_between_steps_are_warnings() -> None:
    found = check("""
        import asyncio, httpx, requests, smtplib
        from urllib import request as web
        from asgiref.sync import sync_to_async
        from django.core import mail
        from django.core.mail import EmailMessage, send_mail

        async def handler(step, params: str):
            requests.post("https://example.com")  #! W106
            web.urlopen("https://example.com")  #! W106
            async with httpx.AsyncClient() as client:
                await client.get("https://example.com")  #! W106
            send_mail("a", "b", "c", ["d"])  #! W106
            await sync_to_async(mail.mail_admins)("a", "b")  #! W106
            EmailMessage("a").send()  #! W106
            await Order.objects.acreate(total=1)  #! W106
            Order.objects.filter(id=1).exclude(x=2).update(total=1)  #! W106
            order = await Order.objects.aget(id=1)  #! W106
            await order.asave(update_fields=["total"])  #! W106
            await asyncio.to_thread(order.save)  #! W106
            await ship_order.astart(params)  #! W106
    """)
    assert (
        found[0].message
        == "`requests.post()` makes an HTTP call between steps, so it repeats on every replay."
    )
    assert found[0].hint == "Move it into the body of a step: `await step.do(name, fn)`."
    assert found[-1].hint.startswith("Start children with `step.spawn` or `step.run_workflow`")


def test_reads_and_starts_between_steps_are_warned_of() -> None:
    found = check("""
        from django.shortcuts import get_object_or_404
        from engine import workflow, workflows
        from shop.workflows import ship_order

        @workflow
        async def bill(step): ...

        async def handler(step, params: str):
            Order.objects.get(id=1)  #! W106
            Order.objects.filter(id=1).first()  #! W106
            await Order.objects.filter(id=1).aexists()  #! W106
            for order in Order.objects.all():  #! W106
                pass
            async for order in Order.objects.filter(id=1):  #! W106
                pass
            [order.id for order in Order.objects.all()]  #! W106
            list(Order.objects.values("id"))  #! W106
            get_object_or_404(Order, id=1)  #! W106
            order.refresh_from_db()  #! W106
            ship_order.start(params)  #! W106
            bill.start()  #! W106
            workflows["send-bill"].start()  #! W106
            ship_order.get_or_start("a", params)  #! W106
            order.instance.send_event("paid")  #! W106
    """)
    assert (
        found[0].message
        == "`Order.objects.get()` reads the database between steps, so it repeats on every replay."
    )
    assert found[-1].hint.startswith("Start children with `step.spawn` or `step.run_workflow`")


def test_effects_in_bodies_and_what_only_sounds_like_one_are_not_warned_of() -> None:
    check("""
        import httpx, requests
        from django.core.mail import send_mail

        async def handler(step, params: dict):
            session = requests.Session()
            async with httpx.AsyncClient() as client:
                await step.do("get", lambda: client.get("https://example.com"))
            await step.do("mail", send_mail, "a", "b", "c", ["d"])
            await step.do("write", lambda: Order.objects.create(total=session.get("x")))
            await step.do("save", Order(total=1).save)
            settings = {"a": 1}
            settings.update(b=2)
            found = Order.objects.filter(id=1)
            await step.do("all", lambda: [one.id for one in found])
            list(params)
            thread.start()
            figure.save("chart.png")
            return settings.get("a"), params.get("post"), queue.put(1)
    """)


def test_effects_in_a_finally_are_warned_of_as_such() -> None:
    """Guarantee 9"""
    found = check("""
        import requests

        async def handler(step):
            try:
                await step.do("a", print)
            finally:
                requests.post("https://example.com")  #! W113
                await step.do("tidy", print)
    """)
    assert "in a `finally:`, which runs whenever the instance leaves a worker" in found[0].message


def test_a_list_filled_in_bodies_and_read_between_steps_is_a_warning() -> None:
    """CC-01"""
    found = check("""
        import collections
        TOTALS = collections.Counter()

        def add(found, item):
            found.append(item)  #! W107

        async def handler(step, params: list):
            results, seen, counts, late, number, mine = [], {}, dict(), [], 0, []

            async def work(item):
                nonlocal number
                results.append(item)  #! W107
                seen[item] = True  #! W107
                counts["all"] += 1  #! W107
                number += 1  #! W107
                TOTALS.update(item)  #! W107
                own = []
                own.append(item)
                return own

            for item in params:
                if item in seen:
                    continue
                await step.do("work", work, item)
            await step.do("more", late.extend, [1, 2])  #! W107
            await step.do("add", add, mine, 4)
            await step.sleep("nap", 1)
            return results, counts, late, number, TOTALS, mine
    """)
    assert found[1].message == (
        "The body of a step changes `results`, and line 29 reads it between steps. A replay does not run the body of "
        "a finished step again: after a wait, or in another worker, the change is lost."
    )


def test_lists_that_are_made_of_results_or_stay_inside_are_not_warned_of() -> None:
    """CC-01"""
    check("""
        import asyncio

        async def handler(step, params: list):
            results, log, before = [], [], [1]
            print(before)

            def copy(found):
                found = list(found)
                found.append(1)
                return found

            async def work(item):
                log.append(item)
                before.append(item)
                results = [item]
                results.append(item)
                return results

            async def one(item):
                results.append(await step.do("work", work, item))

            await asyncio.gather(*(one(item) for item in params))
            results.append(await step.do("log", lambda: list(log)))
            results.append(await step.do("copy", copy, results))
            total = {}
            total["n"] = await step.do("n", len, results)
            return results, total
    """)


def test_changed_params_are_an_error() -> None:
    """CC-03"""
    found = check("""
        def fill(order):
            order.lines.append(1)  #! E108

        async def handler(step, order: Order):
            order.total = 5  #! E108
            order["a"]["b"] = 1  #! E108
            order.items.append(1)  #! E108
            del order.items[0]  #! E108
            order.count += 1  #! E108
            lines = order.lines
            lines.sort()  #! E108
            for item in order.items:
                item.price = 1  #! E108
            setattr(order, "x", 1)  #! E108
            await step.do("a", lambda: order.items.clear())  #! E108
            await step.do("fill", fill, order)
    """)
    assert found[1].message.startswith(
        "This changes the params through `order`. Every replay decodes them anew"
    )


def test_copies_of_params_may_be_changed() -> None:
    """CC-03"""
    check("""
        import copy

        async def handler(step, params: Order):
            items = list(params.items)
            items.append(1)
            deep = copy.deepcopy(params)
            deep.total = 5
            mine = params.model_copy(deep=True)
            mine.total = 5
            total = params.total
            total += 1
            step.params = 1

            def body(params):
                params.total = 1

            await step.do("a", body, deep)
            for item in sorted(params.items):
                other = {}
                other[item.name] = params.total
            return params.model_copy(update={"total": total}), params.items.index(1)
    """)


def test_params_that_are_bound_anew_are_no_longer_the_params() -> None:
    check("""
        async def handler(step, params: Order):
            params = params.model_copy(deep=True)
            params.total = 5
    """)


def test_durable_calls_that_nothing_awaits_are_errors() -> None:
    found = check("""
        async def helper(step): await step.do("x", print)

        async def handler(step, params: list):
            step.do("a", print)  #! E109
            step.fail("no")  #! E109
            unused = step.sleep("b", 1)  #! E109
            health = step.do("c", print)  #! E109
            if not health.ok:
                return
            if step.do("d", print):  #! E109
                [step.do(f"e{n}", print) for n in params]  #! E109
            helper(step)  #! E109

            @step.do("f")
            async def decorated(): ...

            decorated()  #! E109
            for result in step.map("g", params, print):  #! E109
                pass
            return f"{step.do('h', print)}", step.do("i", print).total  #! E109 E109
    """)
    assert found[0].message == (
        "`step.do(…)` is not awaited: its result is lost, and it is cancelled when the handler ends."
    )


def test_durable_calls_that_are_awaited_elsewhere_or_may_be_are_fine() -> None:
    check("""
        import asyncio

        def later(step): return step.do("x", print)

        async def handler(step, params: list):
            first, second = step.do("a", print), step.do("b", print)
            await asyncio.wait([first, second])
            third = step.do("c", print)
            await third
            task = asyncio.create_task(step.do("d", print))
            asyncio.ensure_future(step.do("e", print))
            async with asyncio.TaskGroup() as group:
                group.create_task(step.do("f", print))
            calls = [step.do(f"g{n}", print) for n in params]
            await asyncio.gather(*calls, *(step.do(f"h{n}", print) for n in params))
            pending = {"i": step.do("i", print)}
            params.later(step.do("j", print))
            await later(step)
            (await step.do("k", print)).total
            raced = step.listen("l")
            if raced.done():
                raced.cancel()

            @step.do("m")
            async def body():
                step.do("inner", print)

            do = body()
            def give(): return do
            async def give_more(): yield step.do("n", print)
            step.log.info("text"), step.now()
            return step.do("o", print)
    """)


def test_catching_everything_around_durable_calls_is_an_error() -> None:
    found = check("""
        from contextlib import suppress

        async def helper(step): await step.do("x", print)

        async def handler(step):
            try:
                await step.do("a", print)
            except:  #! E110
                pass
            try:
                await helper(step)
            except (ValueError, BaseException) as error:  #! E110
                print(error)
            with suppress(BaseException):  #! E110
                await step.sleep("b", 1)
    """)
    assert found[0].message.startswith(
        "A bare `except:` around durable calls also catches the end of an instance"
    )


def test_catching_errors_raising_again_and_bodies_are_fine() -> None:
    check("""
        from contextlib import suppress

        async def handler(step):
            try:
                await step.do("a", print)
            except Exception:
                pass
            try:
                await step.do("b", print)
            except BaseException as error:
                step.log.info("gone")
                raise
            try:
                value = int("5")
            except:
                value = 0
            with suppress(ValueError):
                await step.do("c", print)

            async def body():
                try:
                    await step.do("inner", print)
                except:
                    pass

            try:
                def inner(): return step.do("d", print)
            except BaseException:
                pass
            await step.do("e", body)
    """)


def test_a_bare_number_of_10_000_or_more_as_duration_is_a_warning() -> None:
    found = check("""
        from engine import define_step, workflow
        SLOW = {"timeout": 60_000}  #! W111

        @define_step(timeout=30000)  #! W111
        def charge(): ...

        @workflow(handler_timeout=10_000)  #! W111
        async def handler(step):
            await step.sleep("a", 86400)  #! W111
            await step.do("b", print, delay=10000.0, **SLOW)  #! W111
            await step.wait_for_event("c", timeout=3_600_000)  #! W111
            await step.run(charge)
            await step.do("d", print, rollback=print, rollback_options={"max_delay": 99999})  #! W111
    """)
    assert [one.message for one in found if one.line == 10] == [
        "The duration 86400 is in seconds: 1 d. Did you mean milliseconds?"
    ]
    assert [one.hint for one in found if one.line == 10] == [
        'Specify the unit: "86400s", or "86400ms", which is 1 m 26 s.'
    ]


def test_durations_with_a_unit_a_name_or_a_sum_are_meant_as_they_are() -> None:
    check("""
        DAY = 86400

        async def handler(step, params: int):
            await step.sleep("a", "86400s")
            await step.sleep("b", DAY)
            await step.sleep("c", 24 * 3600)
            await step.sleep("d", 9999)
            await step.do("e", print, 60_000, size=50_000, max_attempts=20_000)
            await step.sleep("f", params)
            await step.do("g", wait, {"timeout": 60_000})
    """)


def test_a_wait_that_nothing_ends_is_mentioned() -> None:
    found = check(
        """
        async def handler(step):
            await step.listen("a")  #! I112
            await step.request("b", bool, message="Well?")  #! I112
            await step.wait_for_event("c", timeout=None)  #! I112
            (await step.wait_for_instance("d", handle)).output  #! I112
        """,
        has_deadline=False,
    )
    assert [one.message for one in found][:1] == [
        "`step.listen` has no timeout, and neither does the workflow: it may wait forever."
    ]
    assert {str(one.severity) for one in found} == {"info"}


def test_waits_with_a_timeout_a_rival_or_a_deadline_are_not_mentioned() -> None:
    waits = """
        import asyncio

        async def handler(step, params: str):
            await step.wait_for_event("a")
            await step.request("b", bool, message="Well?", timeout=params)
            await step.wait_for_event("c", timeout="1h")
            await step.wait_for_instance("d", handle, timeout="1h")
            await step.request("e", bool, **LONG)
            await asyncio.wait([step.listen("f"), step.sleep("g", "1h")], return_when=asyncio.FIRST_COMPLETED)
    """
    check(waits, has_deadline=False)
    check("""
        async def handler(step):
            await step.listen("a")
    """)


@pytest.mark.parametrize("file", OURS, ids=[str(file.relative_to(ROOT)) for file in OURS])
def test_there_is_no_false_alarm_on_our_own_workflows(file: Path) -> None:
    source = Source.of(str(file))
    assert source is not None
    said = [
        (found.id, found.node.lineno)  # type: ignore[attr-defined]
        for handler in handlers(source)
        for rule in RULES
        for found in rule(Code(source, handler, Facts("ours", ("golden-double",), has_deadline=True)))
    ]
    assert said == []


def handlers(source: Source) -> list[ast.AsyncFunctionDef]:
    """Return whatever takes a WorkflowStep first: the handlers, and their helpers."""
    found = [node for node in ast.walk(source.tree) if isinstance(node, ast.AsyncFunctionDef)]
    return [one for one in found if one.args.args and one.args.args[0] in source.steps]


def test_our_own_workflows_are_there_to_be_looked_at() -> None:
    assert len([file for file in OURS if (source := Source.of(str(file))) and handlers(source)]) >= 13
