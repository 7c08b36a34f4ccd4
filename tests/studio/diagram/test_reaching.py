"""The steps of an instance prove which parts of a flow control has reached, and nothing more is claimed."""

from __future__ import annotations

from studio.diagram.flow import Flow, every
from studio.diagram.matching import families
from studio.diagram.reaching import Passed, reached
from tests.studio.diagram.reading import read

SHOP = """
risk = await step.do("check", f)
if risk > 0.8:
    await step.do("refuse", f)
    return "refused"
if order > 5:
    await step.do("approve", f)
for n in range(3):
    await step.do(f"parcel-{n}", f)
    if n > 1:
        await step.sleep("wait", 1)
if risk < 0:
    return "odd"
return "paid"
"""


def lines(flow: Flow, *made: str, ended: str = "", times: int = 1, is_sure: bool = True) -> set[str]:
    """Return the lines that were reached after the steps of these names, and the arms that were taken."""
    passed = {
        item.id: Passed(times, is_sure) for item in every(flow.block) if getattr(item, "name", "") in made
    }
    return reached(flow.block, passed, ended=ended) - {"start"}


def test_nothing_is_reached_before_the_first_step() -> None:
    assert lines(read(SHOP)) == set()


def test_an_arm_with_a_step_was_taken() -> None:
    assert lines(read(SHOP), "check", "refuse") == {"4", "5", "5/yes", "6"}


def test_an_arm_is_passed_where_only_one_leads_to_a_later_step() -> None:
    found = lines(read(SHOP), "check", "approve")
    assert {"5", "5/no", "8", "8/yes", "9"} <= found
    assert "7" not in found


def test_a_decision_that_no_step_proves_is_not_claimed() -> None:
    found = lines(read(SHOP), "check", "parcel-{…}")
    assert {"8", "8/no"} <= found  # around the step that was not made
    assert {"12/yes", "12/no", "14", "16"} & found == set()


def test_a_loop_turned_if_a_step_in_it_was_made_again() -> None:
    assert "10/again" not in lines(read(SHOP), "parcel-{…}")
    assert "10/again" in lines(read(SHOP), "parcel-{…}", times=2)


def test_the_end_is_known_if_only_one_is_left() -> None:
    assert "6" in lines(read(SHOP), "check", "refuse", ended="complete")
    assert {"15", "16"} & lines(read(SHOP), "check", "parcel-{…}", ended="complete") == set()  # one of two
    flow = read('await step.do("a", f)\nreturn 1')
    assert "5" in lines(flow, "a", ended="complete")
    assert "5" not in lines(flow, "a", ended="errored")


def test_an_endless_loop_is_left_by_its_only_way_out() -> None:
    flow = read('while True:\n    a = await step.do("a", f)\n    if a:\n        break\nawait step.do("b", f)')
    assert {"6", "6/yes", "7"} <= lines(flow, "a", "b")
    assert {"6/yes", "7"} & lines(flow, "a") == set()


def test_a_step_that_either_arm_may_have_made_takes_neither() -> None:
    flow = read('if order:\n    await step.do("a", f)\nelse:\n    await step.do("a", f)')
    assert lines(flow, "a", is_sure=False) == {"4"}


def test_steps_of_one_name_are_told_apart_by_their_number() -> None:
    flow = read('await step.do("a", f)\nawait step.do("a", f)\nfor n in x:\n    await step.do("a", f)')
    (family,) = families(flow.block)
    makers = [[one.node.line for one in family.makers if one.may_have_made(n)] for n in (1, 2, 3, 9)]
    assert makers == [[4], [5], [7], [7]]
    assert family.most == 4


def test_equal_steps_in_arms_that_exclude_each_other_have_one_number() -> None:
    flow = read('if x:\n    await step.do("a", f)\nelse:\n    await step.do("a", f)\nawait step.do("a", f)')
    (family,) = families(flow.block)
    assert [(one.node.line, one.nth) for one in family.makers] == [(5, 1), (7, 1), (8, 2)]


def test_computed_names_are_matched_as_they_are_written() -> None:
    flow = read('await step.do(f"50%_{order}\\\\", f)\nawait step.do(f"50%_longer{order}", f)')
    assert [one.like for one in families(flow.block)] == ["50\\%\\_longer%", "50\\%\\_%\\\\"]
