"""Starting many from lines: nothing before the preview, each line once, and each bad line named with its rule."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone
from pydantic import BaseModel, SecretStr

from engine import WorkflowStep, workflow
from engine.jobs import batch
from engine.models import Audit, BulkJob, Instance
from engine.values.identity import new_instance_id
from tests.studio import factories

pytestmark = pytest.mark.django_db
MANY = "/workflows/process-order/start/many/"
ITEMS = '"[{""sku"": ""a-1"", ""quantity"": 2}]"'
CSV = f"id,customer,items\no-1,Ana,{ITEMS}\no-2,Bo,{ITEMS}"


class Login(BaseModel):
    key: SecretStr


def page_of(answer: Any) -> str:
    return re.sub(r"[\u2068\u2069]", "", unescape(answer.content.decode()))


def preview(client: Client, text: str, where: str = MANY, **given: str) -> tuple[dict[str, str], str]:
    """Send the text for a preview. Return what the page would send next, and the page."""
    answer = client.post(where, {"text": text, "token": new_instance_id(), "op": "preview", **given})
    page = answer.content.decode()
    hidden = {name: re.findall(rf'name="{name}" value="([^"]*)"', page)[0] for name in ("token", "seen")}
    kept = unescape(re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.DOTALL)[0])
    return {**hidden, "text": kept, "op": "start"}, page_of(answer)


def work(answer: Any, instances: int) -> str:
    """Do what a worker does with the job to which the answer leads. Return the page of the job."""
    where = answer.headers["Location"]
    job = BulkJob.objects.get(id=where.strip("/").split("/")[-1])
    with transaction.atomic():
        assert batch.run(job.key).is_last
    assert Instance.objects.of_users().count() == instances
    return where


def rules(page: str) -> dict[int, str]:
    """Return the refused lines of a preview."""
    found = re.findall(r'<td class="num">(\d+)</td><td>(.*?)</td></tr>', page, re.DOTALL)
    return {int(number): rule for number, rule in found}


def whole_problem(client: Client, text: str) -> str:
    answer = client.post(MANY, {"text": text, "token": new_instance_id(), "op": "preview"})
    assert answer.status_code == 422
    assert not Instance.objects.exists()
    return page_of(answer)


class TestStarting:
    def test_a_preview_writes_nothing_and_then_each_line_starts_once(self, operator: Client) -> None:
        sent, page = preview(operator, CSV)
        assert not Instance.objects.exists()
        assert "2 to start" in page
        answers = [operator.post(MANY, sent) for _ in range(3)]
        assert {answer.status_code for answer in answers} == {302}
        (where,) = {work(answers[0], instances=2), *(answer.headers["Location"] for answer in answers)}
        found = Instance.objects.of_users().order_by("id")
        assert [(one.id, one.params["customer"]) for one in found] == [("o-1", "Ana"), ("o-2", "Bo")]
        assert found[0].params["items"] == [{"sku": "a-1", "quantity": 2}]
        assert {one.started_by for one in found} == {"oli"}
        assert Audit.objects.filter(verb="start", workflow="process-order").count() == 2
        listed = operator.get(where).content.decode()
        assert all(one.get_absolute_url() in listed for one in found)
        search = re.search(r'href="([^"]*)">2 that it starts</a>', listed)
        assert search is not None
        in_list = operator.get(search[1]).content.decode()
        assert all(one.get_absolute_url() in in_list for one in found)

    def test_lines_without_an_id_also_start_once(self, operator: Client) -> None:
        sent, _ = preview(operator, f"customer,items\nAna,{ITEMS}\nAna,{ITEMS}")
        for _ in range(2):
            answer = operator.post(MANY, sent)
        work(answer, instances=2)

    def test_json_lines_have_ids_times_and_tags(self, operator: Client) -> None:
        at = (timezone.now() + timedelta(hours=2)).replace(microsecond=0)
        line = f'{{"id": "t-1", "at": "{at.isoformat()}", "tags": ["eu"]}}'
        sent, page = preview(operator, f"{line}\n\n{{}}", "/workflows/tick/start/many/")
        assert "2 to start" in page
        work(operator.post("/workflows/tick/start/many/", sent), instances=2)
        first = Instance.objects.get(id="t-1")
        assert (first.starts_at, first.tags[0]) == (at, "eu")

    def test_bad_lines_are_left_out_and_the_others_start(self, operator: Client) -> None:
        sent, page = preview(operator, f"{CSV}\no-3,Cleo\no 4,Di,{ITEMS}")
        assert "Start 2" in page
        assert set(rules(page)) == {4, 5}
        work(operator.post(MANY, sent), instances=2)

    def test_a_text_that_was_not_previewed_is_not_started(self, operator: Client) -> None:
        sent, _ = preview(operator, CSV)
        page = page_of(operator.post(MANY, sent | {"text": CSV.replace("Bo", "Eve")}))
        assert "The text has changed since the preview" in page
        assert not Instance.objects.exists()

    def test_the_job_goes_at_the_chosen_pace_and_says_what_it_starts(self, operator: Client) -> None:
        sent, page = preview(operator, CSV)
        assert page.count('name="pace"') == 3
        where = operator.post(MANY, sent | {"pace": "ten"}).headers["Location"]
        (job,) = BulkJob.objects.all()
        assert job.arguments["pace"] == {"at_once": 10, "ask_after": None, "stop_after": 5}
        shown = " ".join(page_of(operator.get(where)).split())
        assert "Start 2 instances" in shown
        assert "This job starts 2 instances." in shown
        assert "2 that it starts" in shown
        assert shown.count("not started") == 2
        assert "new ones" in page_of(operator.get("/bulk/"))

    def test_a_viewer_can_look_and_not_start(self, viewer: Client) -> None:
        assert '<fieldset class="fields" disabled>' in viewer.get(MANY).content.decode()
        assert viewer.post(MANY, {"text": CSV, "op": "start"}).status_code == 403

    def test_the_start_form_leads_to_it(self, operator: Client) -> None:
        assert f'href="{MANY}"' in operator.get("/workflows/process-order/start/").content.decode()

    def test_an_unknown_workflow_is_not_found(self, operator: Client) -> None:
        assert operator.get("/workflows/none/start/many/").status_code == 404


class TestLines:
    @pytest.mark.parametrize(
        ("line", "rule"),
        [
            ("o-9,Ana", "It has 2 values; the first line names 3 columns."),
            (f"o-9,Ana,{ITEMS},x", "It has 4 values; the first line names 3 columns."),
            (f"no id,Ana,{ITEMS}", '"no id"'),
            ("o-9,Ana,[]", "items"),
            ("o-9,Ana,x", "items"),
            (f"taken,Ana,{ITEMS}", "already has an instance"),
            (f"o-1,Ana,{ITEMS}", "already has an instance"),
        ],
    )
    def test_a_bad_line_has_its_number_and_its_rule(self, operator: Client, line: str, rule: str) -> None:
        factories.instance(workflow="process-order", id="taken")
        _, page = preview(operator, f"{CSV}\n{line}")
        assert list(rules(page)) == [4]
        assert rule in rules(page)[4]

    def test_a_line_with_a_bad_time_is_named(self, operator: Client) -> None:
        _, page = preview(operator, f"at,customer,items\n2026-12-01T09:00,Ana,{ITEMS}")
        assert "has no time zone" in rules(page)[2]

    def test_json_lines_that_are_none_are_named(self, operator: Client) -> None:
        _, page = preview(
            operator, '{"id": "a"}\n{"id": \n[1]\n{"ID": 1}\n{"a": NaN}', "/workflows/tick/start/many/"
        )
        assert list(rules(page)) == [2, 3, 4, 5]
        assert "An item is a dict with params, id, tags, retention and at" in rules(page)[4]

    def test_a_quoted_newline_is_part_of_its_line_and_numbers_go_on_behind_it(self, operator: Client) -> None:
        sent, page = preview(operator, f'customer,items\n"A\nB",{ITEMS}\nshort')
        assert list(rules(page)) == [4]
        work(operator.post(MANY, sent), instances=1)
        assert Instance.objects.of_users().get().params["customer"] == "A\nB"

    @pytest.mark.parametrize("mark", [",", ";", "\t"])
    def test_the_delimiter_is_the_one_of_the_header_and_a_mark_of_its_encoding_is_skipped(
        self, operator: Client, mark: str
    ) -> None:
        text = "\ufeff" + CSV.replace("id,customer,items", mark.join(["id", "customer", "items"]))
        text = text.replace("o-1,Ana,", f"o-1{mark}Ana{mark}").replace("o-2,Bo,", f"o-2{mark}Bo{mark}")
        assert "2 to start" in preview(operator, text)[1]

    def test_a_formula_is_only_text(self, operator: Client) -> None:
        sent, page = preview(operator, f"customer,items\n=cmd|' /C calc'!A0<script>,{ITEMS}")
        assert "1 to start" in page
        work(operator.post(MANY, sent), instances=1)
        assert Instance.objects.of_users().get().params["customer"] == "=cmd|' /C calc'!A0<script>"

    def test_an_empty_cell_is_left_out(self, operator: Client) -> None:
        sent, _ = preview(operator, f"id,customer,priority,items\n,Ana,,{ITEMS}")
        work(operator.post(MANY, sent), instances=1)
        assert Instance.objects.of_users().get().params["priority"] == "normal"


class TestWholeTexts:
    def test_a_missing_header_is_said(self, operator: Client) -> None:
        page = whole_problem(operator, f"Ana,{ITEMS}")
        assert (
            'The first line must name the columns. "Ana" is none of them: id, at, tags, customer, items'
            in page
        )

    def test_a_column_that_is_named_twice_is_said(self, operator: Client) -> None:
        assert 'names the column "customer" twice' in whole_problem(operator, "customer,customer\na,b")

    @pytest.mark.parametrize(
        ("header", "rule"),
        [
            ("customer,customer.name", 'The column "customer" already has what "customer.name" would set.'),
            ("customer.name,customer", 'The column "customer" already has what "customer.name" would set.'),
            ("customer,p.customer", 'The columns "customer" and "p.customer" are the same.'),
            ("customer..name,items", "between dots are names"),
            (f"customer.{'.'.join('x' * 3_000)},items", "at most 64 of them"),
            (",".join(f"p.customer.{n}" for n in range(1_001)), "names 1,001 columns; the limit is 1,000"),
        ],
    )
    def test_no_column_overwrites_another_or_leads_nowhere(
        self, operator: Client, header: str, rule: str
    ) -> None:
        assert rule in whole_problem(operator, f"{header}\na,b")

    def test_a_nul_is_said_with_its_line(self, operator: Client) -> None:
        assert "Line 2 has a NUL" in whole_problem(operator, "customer\nA\0na")

    def test_a_quote_that_never_ends_is_said(self, operator: Client) -> None:
        assert "is not CSV" in whole_problem(operator, 'customer,items\n"Ana,x\n')

    def test_no_line_is_said(self, operator: Client) -> None:
        assert "There is no line to start" in whole_problem(operator, " \n")
        assert "There is no line to start" in whole_problem(operator, "customer,items")

    def test_too_many_lines_are_said(self, operator: Client) -> None:
        text = "customer\n" + "A\n" * 100_000
        assert "There are more than 10,000 lines. Split the file." in whole_problem(operator, text)

    def test_too_large_a_text_is_said(self, operator: Client) -> None:
        text = "customer\n" + "A" * (1024 * 1024)
        assert "The text has 1,048,585 bytes; the limit is 1,048,576." in whole_problem(operator, text)

    def test_what_was_typed_is_kept(self, operator: Client) -> None:
        assert "Ana,<b>" in whole_problem(operator, "Ana,<b>")


def test_params_with_secrets_are_not_taken(operator: Client, own_registry: None) -> None:
    @workflow
    async def keep_secret(step: WorkflowStep, params: Login) -> None: ...

    where = "/workflows/keep-secret/start/many/"
    assert "may have secrets" in page_of(operator.get(where))
    answer = operator.post(where, {"text": "key\ncanary-4711", "op": "preview", "token": new_instance_id()})
    assert answer.status_code == 422
    assert "canary" not in answer.content.decode()
