"""Notes on the page of an instance."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from engine.models import Audit, Instance
from engine.steer import requests
from engine.values.identity import new_instance_id
from tests.studio import factories

pytestmark = pytest.mark.django_db


def post(client: Client, instance: Instance, text: str, token: str | None = None) -> tuple[int, str]:
    given = {"text": text, "token": token or new_instance_id()}
    answer = client.post(f"{instance.get_absolute_url()}notes/", given)
    return answer.status_code, answer.content.decode()


def page_of(client: Client, instance: Instance, query: str = "") -> str:
    return client.get(f"{instance.get_absolute_url()}{query}").content.decode()


def shown(page: str) -> list[str]:
    """Return the text of the latest notes, as HTML."""
    notes = page[page.index('id="notes"') :]
    return re.findall(r'<p class="text" dir="auto">(.*?)</p>', notes[: notes.index("</ul>")], re.DOTALL)


@pytest.mark.parametrize("status", ["queued", "running", "paused", "complete", "errored", "terminated"])
def test_a_note_is_added_and_shown_below_the_steps_and_in_the_activity(operator: Client, status: str) -> None:
    instance = factories.instance(status)
    assert post(operator, instance, "They called.\r\nAgain.")[0] == 302
    page = page_of(operator, instance)
    assert shown(page) == ["They called.\nAgain."]
    assert page.index('id="steps"') < page.index('id="notes"')
    assert "They called.\nAgain." in page_of(operator, instance, "?tab=activity")
    assert Audit.objects.latest("key").actor == "oli"


def test_the_three_latest_notes_are_shown_newest_first(operator: Client) -> None:
    instance = factories.instance("queued")
    for n in range(5):
        instance.add_note(f"note {n}")
    assert shown(page_of(operator, instance)) == ["note 4", "note 3", "note 2"]


def test_votes_and_actions_are_among_the_latest_from_people(operator: Client) -> None:
    instance = factories.instance("waiting")
    factories.request(instance, schema={"type": "boolean"}, name="credit-limit")
    instance.add_note("First.", by="ana")
    requests.answer(instance, "credit-limit", False, by=factories.person("approver", "tom"), comment="no")
    instance.pause(by="zoe", reason="to look")
    instance.send_event("paid", by=None)  # by nobody
    page = page_of(operator, instance)
    latest = page[page.index('id="notes"') :]
    said = re.findall(r'<div class="said">(.*?)</div>', latest[: latest.index("</ul>")], re.DOTALL)
    plain = [" ".join(re.sub(r"<[^>]*>", "", one).split()) for one in said]
    assert [one.partition(" waiting ")[0] for one in plain] == [
        "zoe paused: “to look”",
        "tom refused credit-limit “no”",
        "ana noted First.",
    ]


def test_a_note_that_is_added_in_the_activity_leads_back_there(operator: Client) -> None:
    instance = factories.instance("queued")
    given = {"text": "Here.", "token": new_instance_id()}
    answer = operator.post(f"{instance.get_absolute_url()}notes/?tab=activity", given)
    assert answer["Location"] == f"{instance.get_absolute_url()}?tab=activity"
    refused = operator.post(f"{instance.get_absolute_url()}notes/?tab=activity", {"text": "x" * 5_000})
    assert refused.status_code == 422
    assert 'id="activity"' in refused.content.decode()


def test_a_form_that_is_sent_twice_adds_one_note(operator: Client) -> None:
    instance, token = factories.instance("queued"), new_instance_id()
    assert [post(operator, instance, "once", token)[0] for _ in range(2)] == [302, 302]
    assert Audit.objects.filter(verb="note").count() == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" \n ", "It has no text."),
        ("x" * 4001, "The length of the note is 4,001 characters; the limit is 4,000 characters."),
        ("x" * 1_000_000, "The length of the note is 1,000,000 characters"),
        ("a\0b", "It contains NUL or a lone surrogate."),
    ],
)
def test_what_cannot_be_a_note_is_refused_and_stays_in_its_field(
    operator: Client, text: str, said: str
) -> None:
    instance = factories.instance("queued", by="")
    status, page = post(operator, instance, text)
    assert (status, said in page) == (422, True)
    field = page[page.index('id="note-text"') :]
    assert text.replace("\0", "")[:4000] in field[: field.index("</textarea>")]
    assert not Audit.objects.filter(verb="note").exists()


def test_who_may_only_view_reads_notes_and_cannot_write_them(viewer: Client) -> None:
    instance = factories.instance("queued", by="")
    instance.add_note("for all")
    page = page_of(viewer, instance)
    assert (shown(page), 'id="note-form"' in page) == (["for all"], False)
    assert post(viewer, instance, "mine")[0] == 403
    assert [*Audit.objects.order_by("key").values_list("verb", "outcome", "reason")] == [
        ("note", "done", "for all"),
        ("note", "denied", ""),
    ]
    assert shown(page_of(viewer, instance)) == ["for all"]


def test_what_is_open_elsewhere_gets_the_note(operator: Client, signed_in: Callable[..., Client]) -> None:
    instance = factories.instance("queued")
    other = signed_in("viewer", "eve")
    post(operator, instance, "for others")
    frame = other.get(f"/_f/live/?topic=instance:{instance.key}").content.decode()
    assert shown(frame) == ["for others"]


def test_mentions_of_users_are_marked_and_others_are_not(operator: Client) -> None:
    factories.person("viewer", "zoe")
    instance = factories.instance("queued")
    instance.add_note("@zoe. @nobody")
    assert shown(page_of(operator, instance)) == ['<mark class="mention">@zoe</mark>. @nobody']


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("javascript:alert(1) ftp://a.example", "javascript:alert(1) ftp://a.example"),
        ("see https://a.example/x?a=1&b=2.", "see {https://a.example/x?a=1&amp;b=2}."),
        ("(https://a.example/w_(x))", "({https://a.example/w_(x)})"),
        ('https://a.example/"onmouseover="x', "{https://a.example/}&quot;onmouseover=&quot;x"),
        ("https://a.example/\u202egpj", "{https://a.example/}<bdi>\u202egpj</bdi>"),
        ("a \u202eb", "<bdi>a \u202eb</bdi>"),
    ],
)
def test_addresses_become_links_and_all_else_is_inert(operator: Client, text: str, html: str) -> None:
    instance = factories.instance("queued")
    instance.add_note(text)
    link = r'<a href="\1" rel="noopener noreferrer" target="_blank">\1</a>'
    assert shown(page_of(operator, instance)) == [re.sub(r"\{(.*?)\}", link, html)]


def test_a_refused_action_names_the_last_act_and_no_note(operator: Client) -> None:
    instance = factories.instance("queued", by="")
    instance.pause(by="ana")
    instance.add_note("a long note", by="bo")
    answer = operator.post(f"{instance.get_absolute_url()}pause/")
    assert (answer.status_code, "Last action: paused by ana" in answer.content.decode()) == (409, True)
