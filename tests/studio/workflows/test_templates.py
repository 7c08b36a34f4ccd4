"""Templates of the start form: saved by people who may start, without secrets, and nothing that was typed is lost."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pydantic import BaseModel, SecretStr

from engine import WorkflowStep, workflow
from engine.models import Audit, Instance
from engine.values.identity import new_instance_id
from studio.models import StartTemplate
from studio.workflows.templates import rules
from tests.studio import factories
from tests.studio.forms.as_sent import as_sent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("declared")]
START = "/workflows/ship/start/"
CANARY = "canary-4711-hunter2"
MASK = "••••••"
SignIn = Callable[..., Client]


class Parcel(BaseModel):
    to: str
    weight: float = 1
    key: SecretStr | None = None
    keys: list[SecretStr] = []
    extra: dict[str, Any] = {}


@pytest.fixture
def declared(own_registry: None) -> None:
    @workflow("ship")
    async def ship(step: WorkflowStep, params: Parcel) -> None: ...

    @workflow("plain")
    async def plain(step: WorkflowStep, params: dict[str, str]) -> None: ...

    @workflow("nothing")
    async def nothing(step: WorkflowStep) -> None: ...


def form(text: str | dict[str, Any], **given: str) -> dict[str, str]:
    params = text if isinstance(text, str) else json.dumps(text)
    return {"params": params, "token": new_instance_id(), "id": "", "tags": "", **given}


def press(client: Client, op: str, sent: dict[str, str], where: str = START, status: int = 200) -> str:
    answer = client.post(where, {**sent, "op": f"template-{op}"})
    assert answer.status_code == status, answer.content.decode()
    return answer.content.decode()


def save(
    client: Client, text: str | dict[str, Any] = '{"to": "Ana"}', name: str = "Ana", **given: Any
) -> StartTemplate:
    press(client, "save", form(text, **{"template-name": name}), **given)
    return StartTemplate.objects.get(name=name)


def opened(client: Client, template: StartTemplate, more: str = "") -> str:
    where = f"/workflows/{template.workflow}/start/?template={template.slug}{more}"
    return client.get(where).content.decode()


def text_of(page: str) -> str:
    """Return the params as the form would send them."""
    return as_sent(page)["params"]


def said(page: str, id: str) -> str:
    (found,) = re.findall(rf'id="{id}".*?<(?:span|p)>(.*?)</(?:span|p)>', page, re.DOTALL)
    return html.unescape(" ".join(re.sub(r"<[^>]*>", "", found).split()))


class TestUse:
    def test_the_form_begins_with_the_template_and_says_so(self, operator: Client) -> None:
        template = save(operator, '{"to": "Ana", "weight": 1.50, "extra": {"z": 1, "a": 2}}', "For Ana")
        assert Instance.objects.count() == 0
        page = opened(operator, template)
        assert re.search(r"From the template For Ana, last saved .* by oli\.", said(page, "from-template"))
        assert '<a class="button small" href="?">Clear</a>' in page
        assert f'<a href="?template={template.slug}" title="For Ana"\n         aria-current' in page
        assert json.loads(text_of(page)) == {"to": "Ana", "weight": 1.5, "extra": {"z": 1, "a": 2}}
        assert "1.50" in text_of(page)
        assert "From the template" not in operator.get(START).content.decode()

    def test_it_is_of_the_team_and_of_its_workflow(self, operator: Client, signed_in: SignIn) -> None:
        template = save(operator)
        other = signed_in()
        assert ">Ana</bdi>" in other.get(START).content.decode()
        assert json.loads(text_of(opened(other, template)))["to"] == "Ana"
        page = other.get(f"/workflows/plain/start/?template={template.slug}").content.decode()
        assert f"There is no template {template.slug}; this is an example." in page
        assert ">Ana</bdi>" not in page

    def test_values_of_the_address_are_put_over_it(self, operator: Client) -> None:
        template = save(operator, {"to": "Ana", "weight": 2})
        page = opened(operator, template, "&p.weight=3&from=last")
        assert json.loads(text_of(page)) == {"to": "Ana", "weight": 3}
        assert "Not used: from=last." in page

    def test_a_viewer_sees_none(self, operator: Client, viewer: Client) -> None:
        template = save(operator)
        page = opened(viewer, template)
        assert "Templates require the operator role; this is an example." in page
        assert "Ana" not in page
        assert viewer.post(START, form({"to": "Bo"}, op="template-save")).status_code == 403
        assert StartTemplate.objects.count() == 1

    @pytest.mark.parametrize("slug", ["none-abcdefgh", "x" * 500, "\0", "../..", "Ana"])
    def test_an_unknown_one_is_named_and_an_example_shown(self, operator: Client, slug: str) -> None:
        answer = operator.get(START, {"template": slug})
        assert answer.status_code == 200
        assert "this is an example." in answer.content.decode()

    def test_a_workflow_without_params_has_none(self, operator: Client) -> None:
        page = operator.get("/workflows/nothing/start/?template=x").content.decode()
        assert "template-name" not in page

    def test_the_list_is_one_query_without_params(self, operator: Client) -> None:
        template = save(operator)
        for number in range(3):
            save(operator, name=f"more {number}")
        with CaptureQueriesContext(connection) as queries:
            opened(operator, template)
        read = [one["sql"] for one in queries if '"studio_starttemplate"' in one["sql"]]
        assert len(read) == 2
        assert len([sql for sql in read if '"params"' in sql]) == 1

    def test_it_stays_chosen_while_the_form_is_changed_and_refused(self, operator: Client) -> None:
        template = save(operator)
        for op, status in (("check", 200), ("", 422)):
            answer = operator.post(START, form("{}", template=template.slug, op=op))
            assert answer.status_code == status
            assert "From the template Ana" in said(answer.content.decode(), "from-template")


class TestSave:
    def test_what_was_typed_stays_in_the_form(self, operator: Client) -> None:
        sent = form({"to": "Ana"}, id="order-7", tags="eu", **{"template-name": " For Ana "})
        page = press(operator, "save", sent)
        assert said(page, "template-said") == "Saved the template For Ana."
        found = as_sent(page)
        assert (found["id"], found["tags"], found["token"]) == ("order-7", "eu", sent["token"])
        assert found["template"] == StartTemplate.objects.get().slug
        assert Instance.objects.count() == 0

    @pytest.mark.parametrize(
        ("name", "said_of_it"),
        [
            ("", "The template has no name. A name has 1 to 60 characters"),
            ("x" * 61, f'"{"x" * 61}" cannot be the name of a template. A name has 1 to 60 characters'),
            ("a\nb", "cannot be the name of a template. A name has 1 to 60 characters, on one line"),
            ("\u200e", "cannot be the name of a template."),
            ("Ana", 'ship has a template "Ana". Choose another name, or overwrite that one.'),
        ],
    )
    def test_a_name_that_cannot_be_is_refused_and_kept(
        self, operator: Client, name: str, said_of_it: str
    ) -> None:
        save(operator)
        sent = form('{"to":  "Bo"}', tags="eu", **{"template-name": name})
        page = press(operator, "save", sent, status=422)
        assert said_of_it in said(page, "template-problem")
        assert StartTemplate.objects.count() == 1
        found = as_sent(page)
        assert (found["params"], found["tags"]) == ('{"to":  "Bo"}', "eu")
        assert found["template-name"] == name
        assert re.search(r'<details class="save-template"[^>]* open>', page)

    @pytest.mark.parametrize(
        ("text", "said_of_it"),
        [
            ("", "There are no parameters to save."),
            ('{"to": ', "The parameters cannot be saved: "),
            ('{"to": NaN}', "The parameters cannot be saved: "),
            ('{"to": "' + "x" * (1024 * 1024) + '"}', "1,048,576"),
        ],
        ids=["empty", "syntax", "nan", "large"],
    )
    def test_what_is_not_json_or_too_large_is_refused_and_kept(
        self, operator: Client, text: str, said_of_it: str
    ) -> None:
        page = press(operator, "save", form(text, **{"template-name": "Ana"}), status=422)
        assert said_of_it in said(page, "template-problem")
        assert as_sent(page)["params"] == text
        assert as_sent(page)["template-name"] == "Ana"
        assert not StartTemplate.objects.exists()

    def test_a_field_that_cannot_be_read_is_refused_and_kept(self, operator: Client) -> None:
        sent = as_sent(operator.get(START).content.decode())
        sent |= {"f./to": "Ana", "f./weight": "heavy", "f./extra": "{", "template-name": "Ana"}
        page = press(operator, "save", sent, status=422)
        assert "fields that cannot be read" in said(page, "template-problem")
        assert as_sent(page)["f./extra"] == "{"
        assert not StartTemplate.objects.exists()

    def test_params_need_not_be_valid_for_a_start(self, operator: Client) -> None:
        template = save(operator, {"weight": 2})
        assert json.loads(text_of(opened(operator, template))) == {"weight": 2}

    def test_a_workflow_has_so_many(self, operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rules, "MOST_OF_A_WORKFLOW", 1)
        save(operator)
        sent = form({"to": "Bo"}, **{"template-name": "Bo"})
        page = press(operator, "save", sent, status=422)
        assert said(page, "template-problem").startswith(
            "No template was saved. ship has 1 templates, and may have 1."
        )
        save(operator, {"a": "b"}, "Bo", where="/workflows/plain/start/")

    def test_a_name_is_text(self, operator: Client) -> None:
        template = save(operator, name="<b>x</b>\u202e")
        assert "<b>x" not in opened(operator, template)

    def test_it_stays_when_its_maker_is_deleted(self, operator: Client, signed_in: SignIn) -> None:
        template = save(operator)
        factories.User.objects.get(username="oli").delete()
        assert "From the template Ana" in said(opened(signed_in(), template), "from-template")


class TestOverwriteAndDelete:
    def test_whoever_may_start_may_overwrite_it(self, operator: Client, signed_in: SignIn) -> None:
        template = save(operator)
        sent = form({"to": "Bo"}, template=template.slug)
        page = press(signed_in("operator", "pia"), "overwrite", sent)
        assert said(page, "template-said") == "Overwrote the template Ana with these parameters."
        template.refresh_from_db()
        assert (json.loads(template.params), template.name) == ({"to": "Bo"}, "Ana")
        assert (str(template.made_by), str(template.changed_by)) == ("oli", "pia")
        assert " by pia." in said(opened(operator, template), "from-template")

    def test_who_made_it_and_administrators_delete_it(self, operator: Client, signed_in: SignIn) -> None:
        other, admin = signed_in("operator", "pia"), signed_in("admin", "ada")
        for client in (operator, admin):
            template = save(operator)
            sent = form({"to": "typed"}, template=template.slug)
            assert 'value="template-delete"' not in opened(other, template)
            press(other, "delete", sent, status=403)
            assert 'value="template-delete"' in opened(client, template)
            page = press(client, "delete", sent)
            assert said(page, "template-said") == "Deleted the template Ana. The form is unchanged."
            assert json.loads(text_of(page)) == {"to": "typed"}
            assert not StartTemplate.objects.exists()
            assert "this is an example" in opened(client, template)

    def test_one_that_is_gone_is_not_overwritten_and_nothing_is_lost(self, operator: Client) -> None:
        template = save(operator)
        sent = form({"to": "Bo"}, template=template.slug)
        press(operator, "delete", sent)
        page = press(operator, "overwrite", sent, status=422)
        assert "This template no longer exists." in said(page, "template-problem")
        assert json.loads(text_of(page)) == {"to": "Bo"}
        assert "was deleted before" in said(press(operator, "delete", sent), "template-said")

    def test_what_is_done_is_in_the_audit_trail(self, operator: Client, signed_in: SignIn) -> None:
        template = save(operator)
        sent = form({"to": "Bo"}, template=template.slug)
        press(operator, "overwrite", sent)
        press(signed_in(), "delete", sent, status=403)
        press(operator, "delete", sent)
        rows = Audit.objects.order_by("key")
        assert [(one.verb, one.outcome, one.workflow, one.data["template"]) for one in rows] == [
            ("template-create", "done", "ship", "Ana"),
            ("template-change", "done", "ship", "Ana"),
            ("template-delete", "denied", "ship", "Ana"),
            ("template-delete", "done", "ship", "Ana"),
        ]
        assert "overwrote the template Ana" in signed_in("admin").get("/audit/").content.decode()


class TestSecrets:
    FULL = {"to": "Ana", "key": CANARY, "keys": [CANARY, CANARY]}

    def test_are_not_stored_and_the_page_says_so(self, operator: Client) -> None:
        page = press(operator, "save", form(self.FULL, **{"template-name": "Ana"}))
        assert said(page, "template-said").endswith(
            "Secrets are not stored (key, keys/0, keys/1): type them at each start."
        )
        assert CANARY not in page
        template = StartTemplate.objects.get()
        assert json.loads(template.params) == {"to": "Ana", "keys": [MASK, MASK]}
        press(operator, "overwrite", form(self.FULL, template=template.slug))
        template.refresh_from_db()
        assert CANARY not in template.params
        assert CANARY not in str(Audit.objects.values())
        page = opened(operator, template)
        assert "Secrets are not part of a template: type them." in said(page, "from-template")
        assert operator.post(START, as_sent(page)).status_code == 422
        assert not Instance.objects.exists()

    def test_a_secret_in_a_misspelt_field_is_left_out(self, operator: Client) -> None:
        template = save(operator, {"to": "Ana", "kye": CANARY})
        assert json.loads(template.params) == {"to": "Ana"}

    def test_what_is_secret_by_now_is_not_filled_in(self, operator: Client) -> None:
        template = save(operator, {"to": "Ana", "weight": 2})
        StartTemplate.objects.update(params=json.dumps(self.FULL))
        page = opened(operator, template)
        assert CANARY not in page
        assert json.loads(text_of(page)) == {"to": "Ana", "keys": [MASK, MASK]}
        assert "Not filled in, because it is secret now: key, keys/0, keys/1." in page


class TestAnotherSchema:
    """The workflow asks for something else than when the template was saved."""

    @pytest.mark.parametrize(
        "params",
        [
            '{"weight": "heavy", "gone": [1.50, {"a": null}], "to": {"name": "Ana"}}',
            '[1, {"to": "Ana"}]',
            '"Ana"',
            "null",
            '{"extra": ["not", "a map"], "keys": 1.10}',
        ],
    )
    @pytest.mark.parametrize("tab", ["", "&tab=json"])
    def test_it_loads_and_keeps_everything(self, operator: Client, params: str, tab: str) -> None:
        template = save(operator)
        StartTemplate.objects.update(params=params)
        page = opened(operator, template, tab)
        kept = text_of(page)
        expected = json.loads(params, parse_float=str)
        assert json.loads(kept, parse_float=str) == expected
        answer = operator.post(START, as_sent(page))
        assert answer.status_code == 422
        assert "Not started" in answer.content.decode()
