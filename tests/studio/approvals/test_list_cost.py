"""What the list of closed requests costs: of each answer what its row shows, and of one the whole."""

from __future__ import annotations

import pytest

from engine.steer.requests import answer
from studio.approvals.live import draw_approvals
from studio.approvals.queries import box_of
from tests.studio import factories

pytestmark = pytest.mark.django_db


def test_an_answer_is_made_readable_only_where_it_is_shown() -> None:
    user = factories.person("operator", "oli")
    for number in range(3):
        step = factories.request(factories.instance("waiting"), message=f"question {number}?")
        answer(step.instance, step.seq, {"refund": True, "amount": number, "pay_by": "card"}, by="ada")
    box = box_of("done", user)
    shown = box.entries[1]
    assert shown.given is not None
    pieces = draw_approvals(box, shown, mine=0).pieces

    made = [entry.ref for entry in box.entries if "value" in vars(entry.given)]
    assert made == [shown.ref]
    assert '"pay_by": "card"' in shown.given.value.text
    assert "card" in pieces["pane"].html
    assert all(f'?box=done&amp;r={entry.ref}"' in pieces["inbox"].html for entry in box.entries)
