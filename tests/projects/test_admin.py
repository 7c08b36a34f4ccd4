"""Instances in the admin of a project: to look at, without values, and with a link to the Studio."""

from __future__ import annotations

import json

import pytest

from tests.projects.project import Project

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

WORKFLOWS = """
from engine import WorkflowStep, workflow


def charge() -> str:
    return "canary-output"


@workflow
async def pay(step: WorkflowStep, card: str) -> str:
    return await step.do("charge", charge)
"""
LOOK = """
import json
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from engine.models import Instance
from shopping.workflows import pay

def person(name, *permissions):
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client(headers={"host": "localhost"})
    client.force_login(user)
    return client

instance = Instance.objects.get(id="one")
where = f"/admin/engine/instance/{instance.pk}/"
client, other, manager = person("looker", "view_instance"), person("other"), person(
    "manager", "view_instance", "add_instance", "change_instance", "delete_instance"
)
found = {}
with CaptureQueriesContext(connection, ) as queries:
    for name, path in {
        "list": "", "search": "?q=ON", "none": "?q=ne", "workflow": "?workflow=pay", "errored": "?status=errored",
    }.items():
        found[name] = client.get("/admin/engine/instance/" + path).content.decode()
    found["page"] = client.get(where + "change/").content.decode()
    found["history"] = client.get(where + "history/").content.decode()
found["queries"] = [one["sql"] for one in queries]
found["forbidden"] = [other.get("/admin/engine/instance/").status_code, other.get(where + "change/").status_code]
found["changes"] = [
    manager.get("/admin/engine/instance/add/").status_code,
    manager.post(where + "change/", {"status": "errored"}).status_code,
    manager.post(where + "delete/", {"post": "yes"}).status_code,
    manager.post("/admin/engine/instance/", {"action": "delete_selected", "_selected_action": instance.pk}).status_code,
]
found["left"] = Instance.objects.count()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(bare_project: Project) -> dict[str, object]:
    bare_project.app("shopping", workflows=WORKFLOWS)
    bare_project.follow_readme()
    bare_project.manage("migrate", "-v", "0")
    bare_project.shell('from shopping.workflows import pay; pay.start("canary-params", id="one")')
    with bare_project.working():
        bare_project.wait_for("SELECT status FROM engine_instance", [("complete",)])
    found: dict[str, object] = json.loads(bare_project.shell(LOOK).splitlines()[0])
    return found


def test_the_list_has_workflow_id_status_and_a_link(found: dict[str, str]) -> None:
    for name in ("list", "search", "workflow"):
        assert '<a href="/ops/workflows/pay/instances/one/">Open</a>' in found[name], name
        assert "complete" in found[name]
    for name in ("none", "errored"):
        assert "/ops/workflows/" not in found[name], name


def test_the_page_has_steps_and_attempts_and_the_way_to_the_studio(found: dict[str, str]) -> None:
    assert "<td>charge</td>" in found["page"]
    assert "<td>do</td>" in found["page"]
    assert 'href="/ops/workflows/pay/instances/one/" class="viewsitelink"' in found["page"]
    assert 'name="_save"' not in found["page"]


def test_no_value_is_shown_or_read(found: dict[str, str]) -> None:
    assert "canary" not in json.dumps(found)
    for statement in found["queries"]:
        for column in ("params", "output", "error", "pause_reason", "options"):
            assert f'"{column}"' not in statement, statement


def test_nobody_adds_changes_or_deletes(found: dict[str, object]) -> None:
    assert found["changes"][:3] == [403, 403, 403]  # type: ignore[index]
    assert found["left"] == 1


def test_it_takes_djangos_permission_to_view(found: dict[str, object]) -> None:
    assert found["forbidden"] == [403, 403]
