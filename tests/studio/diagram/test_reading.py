"""A handler's source is read to its steps, branches, loops and ends, in the source's own words."""

from __future__ import annotations

import pytest

from studio.diagram.listing import listing
from studio.diagram.reading import IN_CODE
from tests.studio.diagram.reading import HEAD, outline, read, read_module

DONE = "complete:complete"
CASES = {
    "nothing": ("return None", DONE),
    "no return": ('await step.do("a", f)', f"do a, {DONE}"),
    "kinds": (
        """
        await step.sleep("nap", 3)
        await step.sleep_until("later", when)
        await step.wait_for_event("paid")
        await step.listen("ping")
        await step.request("ask", str, message="?")
        await step.run_workflow("child", "w", 1)
        await step.spawn("spawned", "w", 1)
        await step.map("each", items, f)
        await step.parallel("side", *branches)
        """,
        (
            "sleep nap, sleep later, event paid, event ping, request ask, child child, child spawned, map each, "
            f"parallel side, {DONE}"
        ),
    ),
    "milestone": ('await step.progress(f"{order} paid", 50)', f"progress {{…}} paid, {DONE}"),
    "names by keyword and from a constant": ('NAME = "b"\nawait step.do(NAME, f)', f"do b, {DONE}"),
    "concatenated name": ('await step.do("a-" + order, f)', f"do a-{{…}}, {DONE}"),
    "computed name": ("await step.do(order.name, f)", f"do {{…}}, {DONE}"),
    "one inside another": ('await step.do("b", f, await step.do("a", f))', f"do a, do b, {DONE}"),
    "plain code is left out": (
        'if order:\n    x = 1\nfor y in z:\n    x += y\nawait step.do("a", f)',
        f"do a, {DONE}",
    ),
    "early return": (
        'if order  >  3:\n    return "no"\nawait step.do("a", f)',
        f"[order > 3 ? complete:no : ], do a, {DONE}",
    ),
    "condition with a step": ('if await step.do("a", f):\n    raise Gone(1)', None),
    "conditional expression": (
        'x = await step.do("a", f) if order else await step.do("b", f)',
        f"[order ? do a : do b], {DONE}",
    ),
    "elif": (
        'if order == 1:\n    await step.do("a", f)\nelif order == 2:\n    await step.do("b", f)',
        f"[order == 1 ? do a : [order == 2 ? do b : ]], {DONE}",
    ),
    "loop": (
        'for n in range(3):\n    await step.do(f"a-{n}", f)',
        f"<for n in range(3): do a-{{…}}>, {DONE}",
    ),
    "endless loop": (
        'while True:\n    await step.do("a", f)\n    if order:\n        return "x"',
        "<while True: do a, [order ? complete:x : ]>",
    ),
    "left loop": (
        'while True:\n    await step.do("a", f)\n    if order:\n        break',
        f"<while True: do a, [order ? break:leave the loop : ]>, {DONE}",
    ),
    "try": (
        """
        try:
            await step.do("a", f)
        except (A, B):
            await step.do("b", f)
        finally:
            await step.do("c", f)
        """,
        f"do a, [except (A, B) ? do b : ], do c, {DONE}",
    ),
    "return in a try": (
        'try:\n    return await step.do("a", f)\nexcept A:\n    await step.fail("no money")',
        f"do a, [except A ? errored:no money : ], {DONE}",
    ),
    "match": (
        'match order:\n    case 1 | 2:\n        await step.do("a", f)\n    case _:\n        await step.abort("out")',
        f"[order is 1 | 2 ? do a : terminated:out], {DONE}",
    ),
    "gather": (
        'await asyncio.gather(step.do("a", f), step.do("b", f))',
        f"(do a | do b), {DONE}",
    ),
    "gathered variables": (
        'a = step.do("a", f)\nb = step.do("b", f)\nawait asyncio.gather(a, b)',
        f"(do a | do b), {DONE}",
    ),
    "gather of many": ('await asyncio.gather(*(step.do(f"a-{n}", f) for n in x))', f"do a-{{…}}*, {DONE}"),
    "comprehension": ('[await step.do("a", f) for n in x]', f"<for n in x: do a>, {DONE}"),
    "task group": (
        'async with asyncio.TaskGroup() as g:\n    g.create_task(step.do("a", f))\n    g.create_task(step.do("b", f))',
        f"(do a | do b), {DONE}",
    ),
    "decorated": ('@step.do("a")\ndef inner():\n    pass\nawait inner()', f"do a, {DONE}"),
    "lambda": ('run = lambda: step.do("a", f)\nawait run()', f"do a, {DONE}"),
    "imported reusable step": ("await step.run(charge_card, order)", f"do charge-card, {DONE}"),
    "code after a return": ('return "x"\nawait step.do("a", f)', "complete:x"),
    "finally after a return": (
        'try:\n    await step.do("a", f)\n    return "ok"\nfinally:\n    await step.do("b", f)',
        "do a, do b, complete:ok",
    ),
    "hidden beside others": (
        'await step.do("a", f)\nawait more(step, order)',
        f"do a, hidden more(), {DONE}",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_handler_is_read(case: str) -> None:
    body, expected = CASES[case]
    flow = read(body)
    assert flow.problem == ""
    assert outline(flow.block) == (
        expected or f'do a, [await step.do("a", f) ? errored:raise Gone : ], {DONE}'
    )


def test_functions_of_the_module_that_take_step_are_drawn_in_place() -> None:
    helper = """
        async def notify(step, order):
            await step.do("mail", f)
            return await step.run(text_message, order)

        @define_step("sms")
        def text_message(order):
            pass
    """
    flow = read('await step.do("a", f)\nawait notify(step, order)', below=helper)
    assert outline(flow.block) == f"do a, do mail, do sms, {DONE}"
    assert [getattr(item, "within", "") for item in flow.block] == ["", "notify", "notify", ""]
    assert len(flow.spans) == 2  # the code shows it, too


@pytest.mark.parametrize(
    "body",
    [
        "await run_all(step, order)",
        'for kind in order:\n    await getattr(step, kind)("a", f)',
        'exec("x")\nawait build(step)()',
        "await again(step, order)",
    ],
)
def test_steps_that_are_built_in_code_are_said(body: str) -> None:
    recursive = """
        async def again(step, order):
            await again(step, order)
    """
    assert read(body, below=recursive).problem == IN_CODE


def test_recursion_ends() -> None:
    recursive = """
        async def again(step, order):
            await step.do("a", f)
            await again(step, order)
    """
    assert outline(read("await again(step, order)", below=recursive).block) == f"do a, hidden again(), {DONE}"


def test_too_long_handlers_are_said() -> None:
    body = "\n".join(f'await step.do("a{n}", f)' for n in range(5_000))
    assert read(body).problem.startswith("This handler has 5,001 lines, too many to draw.")


def test_too_many_items_and_too_deep_nesting_are_said() -> None:
    assert (
        "too many parts to draw" in read("\n".join(f'await step.do("a{n}", f)' for n in range(500))).problem
    )
    chain = "\n".join(f"{'el' if n else ''}if order == {n}:\n    return 'x{n}'" for n in range(450))
    assert "too many parts to draw" in read(chain).problem


def test_functions_that_call_others_twice_are_not_read_forever() -> None:
    inner = [f"async def f{n}():\n    await f{n + 1}()\n    await f{n + 1}()" for n in range(40)]
    body = "\n".join([*inner, "async def f40():\n    pass", "await f0()"])
    assert "too many parts to draw" in read(body).problem


def test_lines_are_counted_as_python_counts_them() -> None:
    odd = 'SECRET = "a\u2028b"\n\f\n'
    flow = read_module(
        f"{HEAD}{odd}async def handler(step: WorkflowStep, order: int):\n"
        '    if order > 3:\n        return "no"\n    await step.do("a", f)\n'
    )
    assert outline(flow.block) == f"[order > 3 ? complete:no : ], do a, {DONE}"
    shown = listing(f"{HEAD}{odd}async def handler():\n    pass\n", [(5, 6)])
    assert [line.number for line in shown.lines] == [5, 6]
    assert "handler" in shown.lines[0].html


def test_a_function_inside_another_is_shown_once() -> None:
    helper = """
        async def outer(step, order):
            async def inner(step, order):
                await step.do("b", f)
            await inner(step, order)
    """
    spans = read("await outer(step, order)", below=helper).spans
    lines = [line for first, last in spans for line in range(first, last + 1)]
    assert len(lines) == len(set(lines))


def test_a_handler_without_annotations_is_read() -> None:
    flow = read_module('async def handler(s):\n    await s.do("a", print)\n')
    assert outline(flow.block) == f"do a, {DONE}"
