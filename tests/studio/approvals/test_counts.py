"""What counts open requests, or looks up who asks, agrees with what lists them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from engine.models import OpenRequest
from engine.status.gathering import asking
from engine.steer.requests import answer, count_open, open_requests
from studio.approvals import queries
from studio.home.asking import put_to, read
from studio.instances.status_counts import asking_by_workflow
from tests.studio import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def asked() -> set[int]:
    """Requests of two workflows, and the keys of the instances whose requests can be answered."""
    still = [factories.instance("waiting", workflow=name) for name in ("orders", "orders", "refunds")]
    factories.request(still[0])
    factories.request(still[1], assignees=("oli",), wake_at=factories.ago(hours=-1))
    factories.request(still[2], assignees=("ana", "group:leads"))
    given = factories.request(factories.instance("waiting"))
    answer(given.instance, given.seq, {"refund": True, "amount": 3, "pay_by": "card"}, by="ada")
    factories.request(factories.instance("waiting"), wake_at=factories.ago(minutes=1))  # expired
    return {one.key for one in still}


def test_all_agree_on_what_is_open(asked: set[int], admin_user: User) -> None:
    assert OpenRequest.objects.count() == 5
    assert {row.instance_id for row in open_requests()} == asked
    assert {key for key, _, _ in asking(OpenRequest.objects.values_list("instance_id", flat=True))} == asked
    assert asking([]) == set()
    assert (queries.count_open(), count_open(most=2)) == (3, 2)
    assert asking_by_workflow(["orders", "refunds"]) == {("orders", "event"): 2, ("refunds", "event"): 1}
    assert asking_by_workflow(["refunds"]) == {("refunds", "event"): 1}
    found = put_to(admin_user, read(["orders", "refunds"]))
    assert {int(one.ref.split("-")[0]) for one in found} == asked
    assert found[0].expires_at is not None  # the first to expire first
    assert [one.workflow for one in put_to(admin_user, read(["refunds"]))] == ["refunds"]


@pytest.mark.parametrize("role", ["viewer", "approver", "operator"])
def test_the_count_of_a_person_is_that_of_the_inbox(
    asked: set[int], signed_in: Callable[..., Client], role: str
) -> None:
    signed_in(role, "oli")
    user = User.objects.get(username="oli")
    assert queries.count_mine(user) == queries.mine(user).count() == (1 if role == "viewer" else 2)
