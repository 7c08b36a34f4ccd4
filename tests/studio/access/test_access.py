"""Only known users get in, and no user does more than the role allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import get_resolver, reverse
from django.urls.resolvers import URLResolver

from engine.models import Audit, Event, Instance, ScheduleRow
from studio.access import denied_audit
from studio.access.permissions import RefusedError, Verb, allowed, require, rights
from studio.frame.guard import guard, guarded_path, rule_of
from studio.models import Throttle
from tests.studio import factories
from tests.studio.routes import address, names, rules

SignIn = Callable[..., Client]
PROTECTED = sorted(name for name, rule in rules().items() if not rule.is_public)
READABLE = [name for name in PROTECTED if rules()[name].verbs.get("GET") is Verb.VIEW]
FOR_ADMINS = sorted(
    {"team-tokens", "people-tokens", *(name for name in PROTECTED if name.startswith(("webhook", "worker-")))}
)
SENDABLE = [name for name in PROTECTED if "POST" in rules()[name].verbs]
# What every user may change: it concerns no other user. Shared views do, and check that themselves.
VIEWS = {"saved-views", "view-rename", "view-update", "view-move", "view-delete"}
OWN = {"password", "preferences", "tokens", "token-revoke", *VIEWS}
# Bulk jobs belong to no workflow: tests/studio/bulk.
STEERING = [
    name
    for name in PROTECTED
    if rules()[name].action and name not in FOR_ADMINS and not name.startswith("bulk-")
]


class TestGuards:
    def test_every_view_below_the_studios_addresses_has_one(self) -> None:
        found = list(views_of(get_resolver("studio.urls")))
        assert len(found) == len(names())
        assert [view for view in found if rule_of(view) is None] == []

    def test_only_these_are_open_to_everybody(self) -> None:
        assert {name for name, rule in rules().items() if rule.is_public} == {
            "sign-in",
            "sign-out",
            "theme",
            "socket",
            "healthz",
            "hook",  # whose senders sign what they send
            "icons",
            "joined",
            "readyz",
        }

    def test_a_view_without_one_gets_no_address(self) -> None:
        def careless(request: HttpRequest) -> HttpResponse:
            return HttpResponse("everything")

        with pytest.raises(ImproperlyConfigured, match='The view of "careless/" has no guard'):
            guarded_path("careless/", careless, "careless")

    def test_a_view_around_a_guarded_one_is_not_guarded(self) -> None:
        @guard(get=Verb.VIEW)
        def careful(request: HttpRequest) -> HttpResponse:
            return HttpResponse("something")

        @wraps(careful)
        def around(request: HttpRequest) -> HttpResponse:
            return HttpResponse("everything")

        assert rule_of(careful) is not None
        with pytest.raises(ImproperlyConfigured):
            guarded_path("around/", around, "around")


def views_of(resolver: Any) -> Iterator[Any]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from views_of(pattern)
        else:
            yield pattern.callback


@pytest.mark.django_db
class TestAnonymous:
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
    @pytest.mark.parametrize("name", sorted({*SENDABLE} - OWN))
    def test_may_send_nothing(self, viewer: Client, name: str) -> None:
        instance = factories.instance("waiting", workflow="process-order")
        answer = viewer.post(address(name, instance), {"reason": "x", "type": "x", "params": "{}"})
        assert answer.status_code == 403
        needed = "approver" if name == "answer" else "admin" if name in FOR_ADMINS else "operator"
        assert f"This requires the <strong>{needed}</strong> role." in answer.content.decode()
        instance.refresh()
        assert (instance.status, Event.objects.count(), Instance.objects.count()) == ("waiting", 0, 1)
        assert not Audit.objects.filter(outcome="done").exists()

    def test_a_refused_action_leaves_one_denied_row(self, viewer: Client) -> None:
        instance = factories.instance("waiting")
        viewer.post(address("terminate", instance), {"reason": "because"})
        (entry,) = Audit.objects.all()
        assert (entry.verb, entry.actor, entry.outcome) == ("terminate", "vic", "denied")

    @pytest.mark.parametrize("name", STEERING)
    def test_leaves_one_row_wherever_something_is_steered(self, viewer: Client, name: str) -> None:
        instance = factories.instance("waiting", workflow="process-order")
        row = {"expression": "0 9 * * *", "timezone": "UTC", "name": "mornings"}
        ScheduleRow.objects.create(key=1, workflow="process-order", **row)
        factories.failure("process-order")
        assert viewer.post(address(name, instance), {"reason": "x"}).status_code == 403
        (entry,) = Audit.objects.all()
        assert (entry.actor, entry.outcome, entry.workflow) == ("vic", "denied", "process-order")
        assert entry.verb.replace("_", "-") == {"start-many": "start"}.get(name, name)

    def test_a_thousand_tries_leave_a_few_rows(self, viewer: Client) -> None:
        one, other = factories.instance("waiting"), factories.instance("waiting")
        factories.request(other, assignees=["ada"])
        for _ in range(15):
            viewer.post(address("pause", one))
            viewer.post(f"{other.get_absolute_url()}requests/1/answer/")
        entries = Audit.objects.order_by("key")
        assert [entry.outcome for entry in entries] == ["denied"] * denied_audit.OF_A_PERSON
        assert [entry.reason for entry in entries] == [""] * (denied_audit.OF_A_PERSON - 1) + [
            denied_audit.LAST
        ]

    def test_the_tries_of_one_person_hide_nobody_elses(self, viewer: Client, signed_in: SignIn) -> None:
        instance = factories.instance("waiting")
        for _ in range(denied_audit.OF_A_PERSON + 1):
            viewer.post(address("pause", instance))
        signed_in("viewer", "vera").post(address("pause", instance))
        assert Audit.objects.order_by("key").last().actor == "vera"  # type: ignore[union-attr]

    @pytest.mark.parametrize("name", READABLE)
    def test_may_read(self, viewer: Client, name: str) -> None:
        instance = factories.instance("waiting", workflow="process-order")
        factories.step(instance, "reserve")
        factories.failure("process-order")
        factories.job(instance)
        where = address(name, instance)
        answer = viewer.get(where, {"topic": "home"} if name == "live-frame" else {})
        assert answer.status_code == 200

    @pytest.mark.parametrize("name", FOR_ADMINS)
    def test_does_not_read_what_is_for_admins(self, viewer: Client, name: str) -> None:
        answer = viewer.get(address(name)) if "GET" in rules()[name].verbs else viewer.post(address(name))
        assert answer.status_code == 403
        assert "This requires the <strong>admin</strong> role." in answer.content.decode()

    def test_sees_actions_disabled_with_the_reason(self, viewer: Client) -> None:
        """LC-49"""
        page = viewer.get(factories.instance("waiting").get_absolute_url()).content.decode()
        assert page.count('disabled title="Requires the operator role"') == 5


@pytest.mark.django_db
def test_somebody_without_a_role_sees_nothing(signed_in: SignIn) -> None:
    client = signed_in("nobody")
    assert {client.get(address(name)).status_code for name in READABLE} == {403}


@pytest.mark.django_db
class TestWithoutARole:
    def test_the_page_says_who_can_help_and_has_no_button_that_leads_back_to_it(
        self, signed_in: SignIn
    ) -> None:
        page = signed_in("nobody", "ned").get("/").content.decode()
        assert "Your account, <strong>ned</strong>, has no access to this Studio yet." in page
        assert "Ask an administrator to add you to the group <strong>reprise-viewer</strong>" in page
        assert "Sign out ned" in page
        assert ">Home<" not in page

    def test_somebody_with_a_role_is_led_home(self, viewer: Client) -> None:
        page = viewer.post(factories.instance("waiting").get_absolute_url() + "pause/").content.decode()
        assert '<a class="button" href="/">Go home</a>' in page
        assert "the group <strong>reprise-operator</strong>" in " ".join(page.split())


@pytest.mark.django_db
def test_a_role_taken_away_is_gone_at_the_next_request(signed_in: SignIn) -> None:
    client = signed_in("operator", "oli")
    assert client.get("/instances/").status_code == 200
    Group.objects.get(name="reprise-operator").user_set.clear()
    assert client.get("/instances/").status_code == 403


@pytest.mark.django_db
class TestAllowed:
    @pytest.mark.parametrize(
        ("role", "verbs"),
        [
            ("viewer", {Verb.VIEW}),
            ("approver", {Verb.VIEW, Verb.APPROVE}),
            ("operator", {Verb.VIEW, Verb.OPERATE, Verb.APPROVE}),
            ("admin", set(Verb)),
            ("root", set(Verb)),
            ("nobody", set()),
        ],
    )
    @pytest.mark.parametrize("workflow", [None, "orders"])
    def test_the_default_groups_bundle_permissions(
        self, role: str, verbs: set[Verb], workflow: str | None
    ) -> None:
        user = factories.person(role)
        assert {verb for verb in Verb if allowed(user, verb, workflow)} == rights(user) == verbs

    def test_a_permission_of_one_person_is_enough(self) -> None:
        user = factories.person("nobody")
        user.user_permissions.add(Permission.objects.get(codename="view", content_type__app_label="studio"))
        assert allowed(User.objects.get(pk=user.pk), Verb.VIEW, "orders")

    def test_without_the_permission_to_view_the_others_give_nothing(self) -> None:
        user = factories.person("nobody")
        user.user_permissions.set(
            Permission.objects.filter(content_type__app_label="studio").exclude(codename="view")
        )
        assert rights(User.objects.get(pk=user.pk)) == frozenset()

    def test_any_authentication_backend_can_grant(self, settings: Any) -> None:
        settings.AUTHENTICATION_BACKENDS = [f"{__name__}.Directory"]
        assert rights(User(username="from-the-directory")) == {Verb.VIEW, Verb.OPERATE}
        assert rights(User(username="from-elsewhere")) == frozenset()

    @pytest.mark.parametrize("role", ["admin", "root"])
    def test_a_disabled_person_may_do_nothing(self, role: str, settings: Any) -> None:
        # This one lets disabled users in.
        settings.AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.AllowAllUsersModelBackend"]
        user = factories.person(role)
        user.is_active = False
        assert rights(user) == frozenset()

    @pytest.mark.parametrize(
        "user",
        [None, AnonymousUser(), object(), SimpleNamespace(is_authenticated=True, is_active=True)],
        ids=["none", "anonymous", "object", "without permissions"],
    )
    def test_who_is_not_known_may_do_nothing(self, user: Any) -> None:
        assert rights(user) == frozenset()
        with pytest.raises(RefusedError, match=r"needs the permission studio\.view"):
            require(user, Verb.VIEW, None)


class Directory(BaseBackend):
    """Grants what a company's directory says."""

    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        return user_obj.get_username() == "from-the-directory" and perm in ("studio.view", "studio.operate")


@pytest.mark.django_db
class TestWithoutOurMiddleware:
    """No user's rights depend on a line of the settings."""

    DJANGOS = (
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    )

    @pytest.fixture(autouse=True)
    def bare(self, settings: Any) -> None:
        settings.MIDDLEWARE = list(self.DJANGOS)

    @pytest.mark.parametrize("name", PROTECTED)
    def test_a_stranger_is_sent_to_sign_in(self, client: Client, name: str) -> None:
        instance = factories.instance("waiting", workflow="process-order")
        for answer in (client.get(address(name, instance)), client.post(address(name, instance))):
            assert (answer.status_code, answer.content) == (302, b"")
        assert instance.refresh().status == "waiting"

    @pytest.mark.parametrize("name", sorted({*SENDABLE} - OWN))
    def test_a_viewer_may_send_nothing(self, viewer: Client, name: str) -> None:
        instance = factories.instance("waiting", workflow="process-order")
        assert viewer.post(address(name, instance), {"reason": "x"}).status_code == 403
        assert instance.refresh().status == "waiting"

    def test_a_form_of_another_site_is_refused_even_without_djangos_own_guard(
        self, signed_in: SignIn, settings: Any
    ) -> None:
        settings.MIDDLEWARE = [one for one in self.DJANGOS if "Csrf" not in one]
        client = signed_in("operator", enforce_csrf_checks=True)
        instance = factories.instance("waiting")
        assert client.post(address("pause", instance)).status_code == 403
        assert instance.refresh().status == "waiting"

    def test_a_site_without_accounts_is_closed(self, client: Client, settings: Any) -> None:
        settings.MIDDLEWARE = []
        assert {client.get(address(name)).status_code for name in PROTECTED} == {302}


@pytest.mark.django_db
class TestUpgrade:
    """Groups that exist before the permissions are created belong to the site."""

    OLD = ("viewer", "operator", "admin")
    EARLIER = ("0001_roles", "0002_permissions", "0003_throttle")

    def test_groups_that_were_there_get_nothing(self) -> None:
        ours = ["reprise-viewer", "reprise-operator", "reprise-approver"]
        _migrate(None)
        Group.objects.all().delete()
        for name in (*self.OLD, "reprise-admin"):
            Group.objects.create(name=name)
        _migrate("0001_start")
        having = Group.objects.filter(permissions__content_type__app_label="studio")
        assert sorted(having.values_list("name", flat=True).distinct()) == sorted(ours)

    @pytest.mark.parametrize("applied", [EARLIER, EARLIER[:2], EARLIER[:1]])
    def test_a_database_of_an_earlier_version_gets_what_it_lacks(self, applied: tuple[str, ...]) -> None:
        _migrate("0001_start")
        recorder = MigrationRecorder(connection)
        recorder.record_unapplied("studio", "0001_start")
        for name in applied:
            recorder.record_applied("studio", name)
        if "0003_throttle" not in applied:
            with connection.schema_editor() as editor:
                editor.delete_model(Throttle)
        Group.objects.get(name="reprise-approver").delete()
        _migrate("0001_start")
        assert not Throttle.objects.exists()
        was_deleted = "0002_permissions" in applied
        assert Group.objects.filter(name="reprise-approver").exists() is not was_deleted

    def test_a_new_database_has_no_groups_of_plain_names(self) -> None:
        assert not Group.objects.filter(name__in=self.OLD).exists()


def _migrate(name: str | None) -> None:
    executor = MigrationExecutor(connection)
    executor.migrate([("studio", name)])


@pytest.mark.django_db
class TestMethods:
    ACTIONS = (
        "pause",
        "resume",
        "terminate",
        "delete",
        "retry-now",
        "wake-now",
        "retry-rollback",
        "retry-step",
        "fail-step",
        "skip-step",
        "accept-code",
        "send-event",
        "answer",
        "note",
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

    @pytest.mark.parametrize(
        "name", [n for n in READABLE if "POST" not in rules()[n].verbs and n != "live-frame"]
    )
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
    factories.instance(id="order-1")
    answer = client.get(path)
    assert answer.status_code in (301, 302, 404)
    assert b"order-1</a>" not in answer.content


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path", ["/static/../studio/settings.py", "/static/%2e%2e/manage.py", "/media/x", "/admin/"]
)
def test_no_file_outside_static_is_served(operator: Client, path: str) -> None:
    assert operator.get(path).status_code == 404


@pytest.mark.django_db
def test_reverse_names_are_the_addresses_of_the_contract() -> None:
    instance = factories.instance(id="order-1")
    assert (
        address("instance", instance) == instance.get_absolute_url() == "/workflows/orders/instances/order-1/"
    )
    assert reverse("studio:start", args=["orders"]) == "/workflows/orders/start/"
