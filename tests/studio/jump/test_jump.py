"""Search or jump: a few letters lead to pages, workflows, instances, saved views and searches."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from engine import WorkflowStep, workflow
from studio.access.permissions import Verb
from studio.access.principals import Principal, Scope
from studio.jump.found import MOST, find
from studio.models import SavedView
from tests.studio import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_registry")]

SignedIn = Callable[..., Client]


@pytest.fixture(autouse=True)
def refund() -> None:
    @workflow("refund-order")
    async def refund(step: WorkflowStep) -> None: ...


def names(page: str, title: str) -> list[str]:
    """Return what the group of this title offers, in its order."""
    part = re.search(rf"<h2>{title}</h2>(.*?)</section>", page, re.DOTALL)
    found = re.findall(r'class="jump-name">(.*?)</span>', part[1], re.DOTALL) if part else []
    return [" ".join(re.sub("<[^>]*>|[\u2068\u2069]", "", one).split()) for one in found]


def jump(client: Client, typed: str, **headers: str) -> str:
    answer = client.get("/jump/", {"q": typed}, headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def test_letters_find_pages_workflows_and_what_can_be_started(signed_in: SignedIn) -> None:
    page = jump(signed_in("operator"), "order REF")
    assert names(page, "Workflows") == ["refund-order"]
    assert names(page, "Start") == ["Start refund-order"]
    assert 'href="/workflows/refund-order/start/"' in page
    assert names(jump(signed_in("operator"), "start ref"), "Start") == ["Start refund-order"]
    assert names(jump(signed_in("operator"), "TRAIL"), "Pages") == ["Audit trail"]


def test_nothing_typed_offers_the_pages(signed_in: SignedIn) -> None:
    page = jump(signed_in("viewer"), "")
    assert names(page, "Pages")[:3] == ["Home", "Workflows", "Instances"]
    assert names(page, "Workflows")
    assert not names(page, "Start")
    assert not names(page, "Search")


def test_an_instance_is_found_by_the_beginning_of_its_id(signed_in: SignedIn) -> None:
    wanted = factories.instance(id="INV-2026-0042")
    factories.instance(id="other")
    page = jump(signed_in("viewer"), "inv-2026")
    assert names(page, "Instances") == ["INV-2026-0042"]
    assert f'href="{wanted.get_absolute_url()}"' in page
    assert names(page, "Search") == ["Search instances for inv-2026", "Search errors for inv-2026"]
    assert 'href="/instances/?query=inv-2026"' in page


def test_a_role_is_offered_only_what_it_may_do(signed_in: SignedIn) -> None:
    assert not names(jump(signed_in("viewer"), "refund"), "Start")
    assert names(jump(signed_in("viewer"), "webhooks"), "Pages") == []
    assert names(jump(signed_in("admin"), "webhooks"), "Pages") == ["Webhooks"]


def test_who_may_see_one_workflow_finds_only_its_instances() -> None:
    factories.instance(id="job-1")
    seen = factories.instance(workflow="refund-order", id="job-2")
    person = Principal(key="k", name="robot", scope=Scope(frozenset({Verb.VIEW}), ("refund-order",)))

    def found(typed: str) -> dict[str, list[str]]:
        return {group.title: [one.name for one in group.entries] for group in find(person, typed)}

    assert found("job")["Instances"] == [seen.id]
    assert found("")["Workflows"] == ["refund-order"]


def test_a_personal_view_of_another_is_not_found(signed_in: SignedIn, django_user_model: type) -> None:
    other = django_user_model.objects.create(username="someone")  # type: ignore[attr-defined]
    for slug, owner in (("theirs", other), ("shared", None)):
        SavedView.objects.create(
            slug=slug,
            name=f"Late {slug}",
            query="duration:>1h",
            owner=owner,
            is_shared=owner is None,
            position=1,
        )
    assert names(jump(signed_in("viewer"), "late"), "Saved views") == ["Late shared"]


def test_the_dialog_gets_the_list_alone(signed_in: SignedIn) -> None:
    part = jump(signed_in("viewer"), "home", **{"HX-Request": "true"})
    assert "<html" not in part
    assert names(part, "Pages") == ["Home"]


def test_many_are_cut(signed_in: SignedIn) -> None:
    for number in range(MOST + 3):
        factories.instance(id=f"many-{number}")
    assert len(names(jump(signed_in("viewer"), "many"), "Instances")) == MOST


@pytest.mark.parametrize("typed", ["\0", "<b>\u202ex", "'; --", "%", "a" * 5_000, "  ", "*", "\ud800"])
def test_whatever_is_typed_is_shown_inert(signed_in: SignedIn, typed: str) -> None:
    factories.instance(id="x")
    answer = signed_in("viewer").get("/jump/", {"q": typed.encode("utf-8", "surrogatepass")})
    assert answer.status_code == 200
    assert "<b>" not in answer.content.decode()


def test_strangers_sign_in_first(client: Client) -> None:
    assert client.get("/jump/").status_code == 302


def test_the_keys_are_listed_on_a_page_and_for_a_dialog(signed_in: SignedIn) -> None:
    operator, admin = signed_in("operator"), signed_in("admin")
    page = operator.get("/shortcuts/").content.decode()
    assert "<h1>Keyboard shortcuts</h1>" in page
    assert "<dd>Next, previous row</dd>" in page
    assert "<dd>Webhooks</dd>" not in page
    alone = admin.get("/shortcuts/", headers={"HX-Request": "true"}).content.decode()
    assert alone.startswith('<dialog id="keys"')
    assert "<dd>Webhooks</dd>" in alone  # who may not open it is not told the key
    assert "<html" not in alone
