"""Nobody unknown gets in, and nobody does more than the role allows (RELIABILITY E1, E4, E13, E14, E16)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from engine.models import Audit, Event, Instance, ScheduleRow
from studio.permissions import PUBLIC, ROUTES, STEERING, Role, needed, role_of
from tests.studio import factories
from tests.studio.routes import address, names

SignIn = Callable[..., Client]
PROTECTED = sorted(set(names()) - PUBLIC)
READABLE = [name for name in PROTECTED if ROUTES[name][0] is not None]
SENDABLE = [name for name in PROTECTED if ROUTES[name][1] is not None]


def test_every_route_is_named_in_the_table_of_roles() -> None:
    assert set(ROUTES) | PUBLIC == set(names())
    assert not set(ROUTES) & PUBLIC


@pytest.mark.django_db
class TestAnonymous:
    """E1."""

    @pytest.mark.parametrize("name", PROTECTED)
    def test_is_sent_to_sign_in_and_sees_no_data(self, client: Client, name: str) -> None:
        instance = factories.instance("waiting", id="secret-order", workflow="process-order")
        where = address(name, instance)
        answer = client.get(where)
        assert answer.status_code == 302
        assert answer.headers["Location"] == f"/sign-in/?next={where}"
        assert answer.content == b""

    @pytest.mark.parametrize("name", PROTECTED)
    def test_gets_no_fragment_through_htmx(self, client: Client, name: str) -> None:
        answer = client.get(address(name), headers={"HX-Request": "true"})
        assert (answer.status_code, answer.headers["HX-Redirect"], answer.content) == (401, "/sign-in/", b"")

    @pytest.mark.parametrize("name", SENDABLE)
    def test_changes_nothing(self, client: Client, name: str) -> None:
        instance = factories.instance("waiting", workflow="process-order")
        answer = client.post(address(name, instance), {"reason": "x", "type": "x", "params": "{}"})
        assert (answer.status_code, answer.headers["Location"]) == (302, "/sign-in/")
        instance.refresh()
        assert (instance.status, Event.objects.count(), Instance.objects.count()) == ("waiting", 0, 1)

    def test_sees_the_same_for_what_exists_and_what_does_not(self, client: Client) -> None:
        here = factories.instance()
        there = client.get(here.get_absolute_url())
        nowhere = client.get("/workflows/orders/instances/nowhere/")
        assert there.status_code == nowhere.status_code == 302


@pytest.mark.django_db
class TestViewer:
    """E4."""

    @pytest.mark.parametrize("name", SENDABLE)
    def test_may_send_nothing(self, viewer: Client, name: str) -> None:
        instance = factories.instance("waiting", workflow="process-order")
        answer = viewer.post(address(name, instance), {"reason": "x", "type": "x", "params": "{}"})
        assert answer.status_code == 403
        assert b"operator" in answer.content
        instance.refresh()
        assert (instance.status, Event.objects.count(), Instance.objects.count()) == ("waiting", 0, 1)
        assert not Audit.objects.filter(outcome="done").exists()

    def test_a_refused_action_leaves_one_denied_row(self, viewer: Client) -> None:
        instance = factories.instance("waiting")
        viewer.post(address("terminate", instance), {"reason": "because"})
        (entry,) = Audit.objects.all()
        assert (entry.verb, entry.actor, entry.outcome) == ("terminate", "vic", "denied")

    @pytest.mark.parametrize("name", sorted(STEERING))
    def test_leaves_one_row_wherever_something_is_steered(self, viewer: Client, name: str) -> None:
        """E60"""
        instance = factories.instance("waiting", workflow="process-order")
        row = {"expression": "0 9 * * *", "timezone": "UTC", "name": "mornings"}
        ScheduleRow.objects.create(key=1, workflow="process-order", **row)
        assert viewer.post(address(name, instance), {"reason": "x"}).status_code == 403
        (entry,) = Audit.objects.all()
        assert (entry.actor, entry.outcome, entry.workflow) == ("vic", "denied", "process-order")
        assert entry.verb.replace("_", "-") == name

    @pytest.mark.parametrize("name", READABLE)
    def test_may_read(self, viewer: Client, name: str) -> None:
        instance = factories.instance("waiting", workflow="process-order")
        factories.step(instance, "reserve")
        where = address(name, instance)
        answer = viewer.get(where, {"topic": "home"} if name == "live-frame" else {})
        assert answer.status_code == 200

    def test_sees_actions_disabled_with_the_reason(self, viewer: Client) -> None:
        """LC-49"""
        page = viewer.get(factories.instance("waiting").get_absolute_url()).content.decode()
        assert page.count('disabled title="Needs the role operator"') == 4


@pytest.mark.django_db
def test_somebody_without_a_role_sees_nothing(signed_in: SignIn) -> None:
    client = signed_in("nobody")
    assert {client.get(address(name)).status_code for name in READABLE} == {403}


@pytest.mark.django_db
def test_a_role_taken_away_is_gone_at_the_next_request(signed_in: SignIn) -> None:
    client = signed_in("operator", "oli")
    assert client.get("/instances/").status_code == 200
    Group.objects.get(name="operator").user_set.clear()
    assert client.get("/instances/").status_code == 403


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("viewer", Role.VIEWER),
        ("operator", Role.OPERATOR),
        ("admin", Role.ADMIN),
        ("root", Role.ADMIN),
        ("nobody", 0),
    ],
)
def test_a_role_is_a_group(role: str, expected: Role) -> None:
    assert role_of(factories.person(role)) == expected


@pytest.mark.django_db
def test_a_disabled_person_has_no_role() -> None:
    user = factories.person("admin")
    user.is_active = False
    assert role_of(user) == Role.NOBODY


def test_an_unnamed_route_needs_what_nobody_has() -> None:
    assert needed("surprise", "GET") is None


@pytest.mark.django_db
class TestMethods:
    """E13."""

    ACTIONS = (
        "pause",
        "resume",
        "terminate",
        "delete",
        "retry-rollback",
        "accept-code",
        "send-event",
        "answer",
    )

    @pytest.mark.parametrize("method", ["get", "head", "put", "patch", "delete", "options", "trace"])
    @pytest.mark.parametrize("name", ACTIONS)
    def test_actions_take_post_only(self, operator: Client, name: str, method: str) -> None:
        instance = factories.instance("waiting")
        answer = getattr(operator, method)(address(name, instance))
        assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
        assert instance.refresh().status == "waiting"

    @pytest.mark.parametrize("headers", [{"X-HTTP-Method-Override": "POST"}, {"X-Method-Override": "POST"}])
    def test_no_header_makes_another_method_of_it(self, operator: Client, headers: dict[str, str]) -> None:
        instance = factories.instance("waiting")
        answer = operator.get(f"{address('pause', instance)}?_method=POST", headers=headers)
        assert (answer.status_code, instance.refresh().status) == (405, "waiting")

    @pytest.mark.parametrize("name", [n for n in READABLE if n not in ("start", "restart", "live-frame")])
    def test_pages_take_no_post(self, operator: Client, name: str) -> None:
        assert operator.post(address(name, factories.instance())).status_code == 405

    def test_head_of_a_page_has_no_body(self, operator: Client) -> None:
        answer = operator.head("/instances/")
        assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path",
    [
        "/instances",
        "//instances/",
        "/Instances/",
        "/instances/%2e%2e/instances/",
        "/./instances/",
        "/instances/;/",
        "/workflows/orders/instances/order-1",
        "/workflows/orders//instances/order-1/",
    ],
)
def test_variants_of_an_address_show_no_data_to_strangers(client: Client, path: str) -> None:
    """E14."""
    factories.instance(id="order-1")
    answer = client.get(path)
    assert answer.status_code in (301, 302, 404)
    assert b"order-1</a>" not in answer.content


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path", ["/static/../studio/settings.py", "/static/%2e%2e/manage.py", "/media/x", "/admin/"]
)
def test_no_file_outside_static_is_served(operator: Client, path: str) -> None:
    """E15, E16."""
    assert operator.get(path).status_code == 404


@pytest.mark.django_db
def test_reverse_names_are_the_addresses_of_the_contract() -> None:
    instance = factories.instance(id="order-1")
    assert (
        address("instance", instance) == instance.get_absolute_url() == "/workflows/orders/instances/order-1/"
    )
    assert reverse("start", args=["orders"]) == "/workflows/orders/start/"
