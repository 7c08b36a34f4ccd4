"""What the lints take for a handler, for `step`, for code between steps, and for a comment that allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.lints.names import Names
from engine.lints.source import Source
from tests.unit.lints import check, lint


@pytest.mark.parametrize(
    "imported",
    [
        "from uuid import uuid4 as fresh",
        "from uuid import *; fresh = uuid4",
        "import uuid as ids; fresh = ids.uuid4",
        "from engine import *; from uuid import *; fresh = uuid4",
        "try:\n    from uuid import uuid4 as fresh\nexcept ImportError:\n    from uuid import uuid4 as fresh",
    ],
)
def test_a_name_means_what_it_was_imported_as(imported: str) -> None:
    found = lint(f"{imported}\nasync def handler(step):\n    fresh()")
    assert [one.id for one in found] == ["engine.E105"]


@pytest.mark.parametrize(
    "bound",
    [
        "fresh = lambda: 1",
        "from shop import fresh",
        "from uuid import uuid5 as fresh",
        "from shop import *; from uuid import *",
        "from uuid import uuid4 as fresh\nfrom shop import fresh",
        "def fresh(): ...",
    ],
)
def test_a_name_that_may_mean_something_else_is_not_judged(bound: str) -> None:
    assert lint(f"{bound}\nasync def handler(step):\n    fresh()") == []


def test_names_inside_a_function_hide_those_outside() -> None:
    check("""
        import random, time, uuid

        async def handler(step, params: list):
            random = step.random
            random.choice(params)
            for time in params:
                time.time()
            [uuid.uuid4() for uuid in params]
            if (uuid_ := params):
                uuid_.uuid4()
            uuid.uuid4()  #! E105
    """)


def test_what_a_handler_calls_in_its_module_is_read_too_one_level_deep() -> None:
    check("""
        import time

        def deeper(): return time.time()

        def stamp():
            deeper()
            return time.time()  #! E105

        class Model:
            def stamp(self): return time.time()

        def body(): return time.time()

        async def several(step, name):
            def inner(): return time.time()  #! E105
            inner()
            step.do("a", print)  #! E109
            await step.do(name, lambda: stamp())

        async def handler(step):
            async def one():
                time.time()  #! E105
            stamp()
            await gather(one(), several(name="b", step=step))
            await step.do("c", body)
            def unused(): return time.time()
            Model().stamp()
    """)


def test_a_function_that_only_makes_bodies_is_read_as_far_as_it_runs() -> None:
    check("""
        import time

        def make():
            started = time.time()  #! E105
            def body(): return time.time() - started
            return body

        async def handler(step):
            await step.do("a", make())
    """)


def test_step_and_params_may_have_any_name_and_be_handed_on() -> None:
    check("""
        import engine
        from engine import WorkflowStep as Step

        def change(order): order.total = 1  #! E108

        async def typed(work: "engine.WorkflowStep"): work.do("a", print)  #! E109

        async def renamed(work: Step):
            async def inner(again: engine.WorkflowStep):
                again.do("f", print)  #! E109
            work.do("g", print)  #! E109
            await inner(nobody)

        async def handed(s): s.do("b", print)  #! E109

        async def handler(flow: WorkflowStep, order: Order):
            flow.do("c", print)  #! E109
            await typed(flow)
            await renamed(nobody)
            await handed(flow)
            change(order)
            do = flow.do
            do("d", print)  #! E109
            other.do("e", print)
    """)


def test_handlers_in_functions_and_classes_see_the_names_around_them() -> None:
    check("""
        def declare(workflow):
            import uuid

            class Shop:
                uuid = None

                @staticmethod
                @workflow
                async def handler(step):
                    uuid.uuid4()  #! E105

            return Shop
    """)


def test_every_statement_of_a_handler_is_read() -> None:
    check("""
        import time

        async def handler(step, params: list):
            async with lock(time.time()):  #! E105
                async for item in source(time.time()):  #! E105
                    match time.time():  #! E105
                        case 1 if time.time():  #! E105
                            return {time.time(): 1}  #! E105
            def inner(at=time.time()): return at  #! E105
            try:
                yielded = [x async for x in source()] if params else (y := time.time())  #! E105
            finally:
                assert time.time(), f"{time.time()}"  #! E105 E105
    """)


def test_a_comment_that_gives_a_reason_allows_a_lint_on_its_lines() -> None:
    found = check("""
        import time

        @workflow  # reprise: allow E105 because this allows nothing inside
        async def handler(step):
            time.time()  # reprise: allow E105 because it is only logged
            time.time()  # reprise: allow W106, E105 because both are meant
            print(
                time.time(),  # reprise: allow E105 because it is only shown
            )
            time.time()  # reprise: allow W106 because this is another one #! E105
            time.time()  # reprise: allow E105 #! E105
    """)
    assert [one.hint.partition(" (")[2] for one in found][1:] == [
        "To allow it, the comment must be: # reprise: allow E105 because …)"
    ]


def test_what_cannot_be_read_has_no_findings(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("async def handler(step:")
    (tmp_path / "strange.py").write_bytes(b"# coding: klingon\n\xff")
    for name in ("broken.py", "strange.py", "missing.py"):
        assert Source.of(str(tmp_path / name)) is None


def test_names_that_stand_for_themselves_or_for_many_are_not_followed_for_ever() -> None:
    source = Source("\n".join(["x = x.next", *(f"y = y.a{n}(y)" for n in range(200)), "x, y"]), "a.py")
    used = source.tree.body[-1].value.elts  # type: ignore[attr-defined]
    assert [Names(source.tree).resolve(name) for name in used] == [None, None]
