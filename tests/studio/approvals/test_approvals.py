"""The inbox, and the answer to a request: who may give it, which one counts, and that a GET decides nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from engine.models import Audit, Event, Step
from engine.steer import restart
from engine.steer.requests import answer
from studio.approvals import queries as inbox_module
from tests.studio import factories
from tests.studio.display.test_escaping import EVIL, assert_is_text
from tests.studio.factories import REFUND

pytestmark = pytest.mark.django_db
SignIn = Callable[..., Client]
GOOD = {
    "answer/refund": "true",
    "answer/amount": "1200",
    "answer/pay_by": '"card"',
    "comment": "photo is clear",
}


def asked(**given: Any) -> Step:
    of = given.pop("of", None) or factories.instance("waiting", id="order-1")
    return factories.request(of, **given)


def send(client: Client, step: Step, *, htmx: bool = False, **given: str) -> tuple[int, str]:
    instance = step.instance
    where = f"{instance.get_absolute_url()}requests/{step.seq}/answer/"
    answer = client.post(where, GOOD | given, headers={"HX-Request": "true"} if htmx else {})
    return answer.status_code, answer.content.decode()


def inbox(client: Client, box: str = "mine", **given: str) -> str:
    return client.get("/approvals/", {"box": box, **given}).content.decode()


def member_of(sign_in: SignIn, group: str, role: str = "viewer", name: str = "ana") -> Client:
    client = sign_in(role, name)
    Group.objects.get_or_create(name=group)[0].user_set.add(factories.User.objects.get(username=name))
    return client


def ref(step: Step) -> str:
    return f"{step.instance_id}-{step.generation}-{step.seq}"


class TestAnswer:
    @pytest.mark.parametrize("htmx", [True, False])
    @pytest.mark.parametrize("place", ["", "mine"])
    def test_is_taken_with_who_gave_it_and_why(self, operator: Client, htmx: bool, place: str) -> None:
        step = asked()
        status, page = send(operator, step, htmx=htmx, place=place)
        assert status == (200 if htmx else 302)
        event = Event.objects.get()
        assert event.payload == {
            "value": {"refund": True, "amount": 1200, "pay_by": "card"},
            "comment": "photo is clear",
        }
        assert (event.type, event.sent_by) == ("reprise:request:1:1", "oli")
        (entry,) = Audit.objects.all()
        assert (entry.verb, entry.actor, entry.reason) == ("answer", "oli", "photo is clear")
        if htmx:
            assert "Answer sent" in page
            assert 'hx-target="#approvals-count"' in page
            assert 'hx-target="#pane"' in page if place else 'hx-target="#requests"' in page

    @pytest.mark.parametrize("htmx", [True, False])
    @pytest.mark.parametrize("place", ["", "open"])
    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"answer/amount": "many"}, "Enter a number."),
            ({"answer/amount": "1240.5"}, "1240.5 is greater than the maximum of 1240"),
            ({"answer/refund": ""}, "Choose one."),
            ({"answer/note": "x" * 81}, "not valid"),
        ],
    )
    def test_that_does_not_fit_is_refused_and_kept_as_it_was_typed(
        self, operator: Client, htmx: bool, place: str, wrong: dict[str, str], said: str
    ) -> None:
        """KC-35"""
        step = asked()
        status, page = send(operator, step, htmx=htmx, place=place, **wrong, comment="<b>why</b>")
        assert status == 422
        assert "Not sent: fix 1 field." in page
        assert said in page or "too long" in page
        assert 'aria-invalid="true"' in page
        assert "&lt;b&gt;why&lt;/b&gt;" in page
        assert not Event.objects.exists()
        assert ("<html" in page) is not htmx

    def test_with_several_problems_has_them_all_at_their_fields(self, operator: Client) -> None:
        step = asked()
        wrong = {
            "answer/refund": "",
            "answer/amount": "2000",
            "answer/pay_by": '"cash"',
            "answer/note": "x" * 81,
        }
        status, page = send(operator, step, **wrong)
        assert status == 422
        assert "Not sent: fix 4 fields." in page
        assert len(re.findall(r'<ul class="problem" id="[^"]*-problem">\s*<li>', page)) == 4

    def test_with_a_problem_names_the_help_and_the_problem_of_each_field(self, operator: Client) -> None:
        _, page = send(operator, asked(), **{"answer/refund": "", "answer/amount": "2000"})
        described = [ids.split() for ids in re.findall(r'aria-describedby="([^"]*)"', page)]
        assert {name for ids in described for name in ids} <= {*re.findall(r'\sid="([^"]+)"', page)}
        kinds = [[name.rpartition("-")[2] for name in ids] for ids in described]
        assert ["problem"] in kinds
        assert ["help", "problem"] in kinds

    @pytest.mark.parametrize("htmx", [True, False])
    @pytest.mark.parametrize("place", ["", "mine"])
    def test_that_comes_second_is_told_who_was_first(self, operator: Client, htmx: bool, place: str) -> None:
        """HC-13"""
        step = asked()
        answer(step.instance, step.seq, {"refund": False, "amount": 0}, by="ada", comment="wrong IBAN")
        status, page = send(operator, step, htmx=htmx, place=place)
        assert status == 409
        assert "ada already answered at" in page
        assert "“wrong IBAN”" in page
        assert f'id="answer-{ref(step)}"' not in page
        assert Event.objects.count() == 1
        assert Audit.objects.filter(outcome="done").count() == 1

    def test_that_is_sent_twice_by_one_person_was_given_once(self, operator: Client) -> None:
        step = asked()
        assert [send(operator, step)[0] for _ in range(2)] == [302, 302]
        assert send(operator, step, **{"answer/amount": "1"})[0] == 409
        assert Event.objects.count() == 1

    @pytest.mark.parametrize("htmx", [True, False])
    def test_after_its_expiry_is_refused(self, operator: Client, htmx: bool) -> None:
        step = asked(wake_at=timezone.now())
        status, page = send(operator, step, htmx=htmx)
        assert status == 409
        assert "it has expired" in page
        assert not Event.objects.exists()

    @pytest.mark.parametrize("place", ["", "mine"])
    def test_after_the_end_of_the_instance_is_refused(self, operator: Client, place: str) -> None:
        step = asked()
        step.instance.terminate()
        status, page = send(operator, step, place=place)
        assert status == 409
        assert "is terminated" in page
        assert not Event.objects.exists()

    def test_from_a_form_of_an_earlier_generation_is_refused(self, operator: Client) -> None:
        step = asked()
        restart.restart(step.instance)
        status, page = send(operator, step, generation="1", place="mine")
        assert (status, Event.objects.count()) == (409, 0)
        assert "restarted" in page

    @pytest.mark.parametrize("seq", ["7", "99999999999999999999"])
    def test_to_what_was_not_asked_is_not_found(self, operator: Client, seq: str) -> None:
        instance = asked().instance
        assert operator.post(f"{instance.get_absolute_url()}requests/{seq}/answer/", GOOD).status_code == 404
        assert operator.post("/workflows/orders/instances/none/requests/1/answer/", GOOD).status_code == 404

    def test_to_a_step_of_another_kind_is_not_found(self, operator: Client) -> None:
        instance = factories.instance("waiting")
        factories.step(instance, "approval", "waiting", kind="event")
        assert operator.post(f"{instance.get_absolute_url()}requests/1/answer/", GOOD).status_code == 404

    def test_of_nonsense_is_no_crash(self, operator: Client) -> None:
        step = asked()
        for nonsense in (
            "\0",
            "\ud800".encode("utf-16", "surrogatepass").decode("utf-8", "replace"),
            "1" * 5_000,
        ):
            status, _ = send(
                operator, step, **{"answer/amount": nonsense, "generation": nonsense, "place": nonsense}
            )
            assert status in (404, 422)
        assert not Event.objects.exists()

    def test_by_get_decides_nothing(self, operator: Client) -> None:
        step = asked()
        where = f"{step.instance.get_absolute_url()}requests/{step.seq}/answer/"
        assert operator.get(where, GOOD).status_code == 405
        assert not Event.objects.exists()


class TestPermission:
    def denied(self, client: Client, step: Step, said: str) -> None:
        status, page = send(client, step)
        assert status == 403
        assert said in page
        assert not Event.objects.exists()
        (entry,) = Audit.objects.all()
        assert (entry.verb, entry.outcome) == ("answer", "denied")
        for page in (
            client.get(step.instance.get_absolute_url()).content.decode(),
            inbox(client, "open", r=ref(step)),
        ):
            assert "Send answer" not in page
            assert "can answer this" in page
            assert "Only any approver" not in re.sub(r"\s+", " ", page)

    def test_a_viewer_may_not_answer(self, viewer: Client) -> None:
        self.denied(viewer, asked(), "approver")

    def test_an_approver_may_answer_and_steers_nothing(self, signed_in: SignIn) -> None:
        client, step = signed_in("approver", "ada"), asked()
        assert client.post(f"{step.instance.get_absolute_url()}pause/").status_code == 403
        assert send(client, step)[0] == 302

    def test_an_operator_may_not_answer_what_others_were_asked(self, operator: Client) -> None:
        self.denied(operator, asked(assignees=["group:finance", "ada"]), "finance or ada")

    def test_an_admin_by_group_is_nobody_special(self, signed_in: SignIn) -> None:
        self.denied(signed_in("admin"), asked(assignees=["ada"]), "ada")

    def test_a_member_of_the_group_may_also_as_a_viewer(self, signed_in: SignIn) -> None:
        step = asked(assignees=["group:finance"])
        client = member_of(signed_in, "finance")
        assert "Send answer" in client.get(step.instance.get_absolute_url()).content.decode()
        assert send(client, step)[0] == 302

    def test_who_is_named_may_also_as_a_viewer(self, viewer: Client) -> None:
        assert send(viewer, asked(assignees=["vic"]))[0] == 302

    def test_who_is_named_may_not_without_a_role(self, signed_in: SignIn) -> None:
        assert send(signed_in("nobody", "nick"), asked(assignees=["nick"]))[0] == 403

    def test_a_superuser_may(self, signed_in: SignIn) -> None:
        assert send(signed_in("root"), asked(assignees=["ada"]))[0] == 302

    def test_a_name_is_no_group(self, signed_in: SignIn) -> None:
        self.denied(signed_in("operator", "finance"), asked(assignees=["group:finance"]), "finance")


class TestInbox:
    def test_has_the_boxes_of_a_person_the_next_to_expire_first(self, signed_in: SignIn) -> None:
        client = member_of(signed_in, "finance", "operator")
        soon, later = factories.ago(hours=-1), factories.ago(hours=-5)
        for name, given in {
            "never": {"message": "Never?"},
            "later": {"message": "Later?", "wake_at": later, "assignees": ["ana"]},
            "soon": {"message": "Soon?", "wake_at": soon, "assignees": ["group:finance"]},
            "others": {"message": "Others?", "assignees": ["bob"], "wake_at": soon},
        }.items():
            asked(of=factories.instance("waiting", id=name), **given)
        assert titles(inbox(client)) == ["Soon?", "Later?", "Never?"]
        assert titles(inbox(client, "open"))[-2:] == ["Later?", "Never?"]
        assert sorted(titles(inbox(client, "open"))) == ["Later?", "Never?", "Others?", "Soon?"]
        assert titles(inbox(client, "done")) == []
        assert badge(inbox(client)) == 3

    def test_shows_what_was_answered_last_first(self, operator: Client) -> None:
        for name in ("one", "two"):
            step = asked(of=factories.instance("waiting", id=name), message=f"{name}?")
            answer(step.instance, "decide", {"refund": True, "amount": 1}, by="ada", comment=f"fine, {name}")
        page = inbox(operator, "done")
        assert titles(page) == ["two?", "one?"]
        assert "Answered by <strong>ada</strong>" in page
        assert "“<bdi>fine, two</bdi>”" in page
        assert titles(inbox(operator)) == titles(inbox(operator, "open")) == []
        assert badge(page) == 0

    def test_leaves_out_what_takes_no_answer(self, operator: Client) -> None:
        asked(of=factories.instance("waiting"), wake_at=timezone.now())
        asked(of=factories.instance("complete"), status="cancelled")
        assert titles(inbox(operator, "open")) == []

    @pytest.mark.parametrize(
        ("box", "said"),
        [
            ("mine", "Nothing is waiting for you"),
            ("open", "No open requests"),
            ("done", "No closed requests yet"),
        ],
    )
    def test_is_never_an_empty_page(self, operator: Client, box: str, said: str) -> None:
        page = inbox(operator, box)
        assert said in page
        assert re.search(r'id="pane" class="pane" hidden', page)

    def test_of_a_viewer_says_that_others_are_asked(self, viewer: Client) -> None:
        asked()
        page = inbox(viewer)
        assert "1 is waiting for others." in page
        assert badge(page) == 0

    def test_shows_the_chosen_request_and_what_became_of_it(self, operator: Client) -> None:
        first, second = (
            asked(of=factories.instance("waiting", id=name), message=f"{name}?\nSee <b>there</b>.")
            for name in ("one", "two")
        )
        page = inbox(operator, r=ref(second))
        assert pane(page)[0] == "two?"
        assert "See &lt;b&gt;there&lt;/b&gt;." in page
        assert 'class="inbox chosen"' in page
        assert "Send answer" in page
        assert pane(inbox(operator))[0] == "one?"
        answer(second.instance, "decide", {"refund": True, "amount": 1}, by="ada")
        assert "Answered by <strong>ada</strong>" in inbox(operator, r=ref(second))
        first.instance.terminate()
        page = re.sub("<[^>]*>", "", inbox(operator, r=ref(first)))
        assert re.search(r"Closed: a program terminated the instance \S+ \w+( ago)?\.", page)

    def test_lists_what_expired_and_what_was_withdrawn_with_its_outcome(self, operator: Client) -> None:
        late = asked(of=factories.instance("waiting", id="late"), message="Late?", wake_at=timezone.now())
        gone = asked(of=factories.instance("waiting", id="gone"), message="Gone?")
        gone.instance.terminate(by="zoe", reason="duplicate")
        again = asked(of=factories.instance("waiting", id="again"), message="Again?")
        restart.restart(again.instance, by="ana")
        page = inbox(operator, "done")
        assert sorted(titles(page)) == ["Again?", "Gone?", "Late?"]
        assert sorted(re.findall(r">(Expired|Withdrawn)</span>", page)) == [
            "Expired",
            "Withdrawn",
            "Withdrawn",
        ]
        said = {step: text_of(inbox(operator, "done", r=ref(step))) for step in (late, gone, again)}
        assert re.search(r"Expired (just now|\d+ s ago)\.", said[late])
        assert re.search(r"Closed: zoe terminated the instance [^.]* \(“duplicate”\)\.", said[gone])
        assert "Closed: ana restarted the instance" in said[again]

    def test_lists_what_a_worker_has_ended(self, operator: Client) -> None:
        """Its step says how: it timed out, or the workflow continued without it."""
        ended = factories.instance("complete")
        at = factories.ago(minutes=1)
        for name, status in (("slow", "errored"), ("left", "cancelled")):
            made = asked(
                of=ended, name=name, message=f"{name}?", status="waiting", started_at=factories.ago(minutes=2)
            )
            error = factories.FAILURE if status == "errored" else None
            delivery = made.seq if error else None
            Step.objects.filter(pk=made.pk).update(
                status=status, error=error, finished_at=at, delivery=delivery
            )
        page = inbox(operator, "done")
        assert sorted(titles(page)) == ["left?", "slow?"]
        assert sorted(re.findall(r">(Expired|Withdrawn)</span>", page)) == ["Expired", "Withdrawn"]

    def test_tells_a_refusal_from_an_approval(self, operator: Client) -> None:
        yes_or_no = {
            "type": "object",
            "properties": {"approve": {"type": "boolean"}, "why": {"type": "string"}},
            "required": ["approve"],
        }
        for name, schema, value in (
            ("yes", yes_or_no, {"approve": True}),
            ("no", yes_or_no, {"approve": False, "why": "too much"}),
            ("plain", {"type": "boolean"}, False),
            ("else", REFUND, {"refund": False, "amount": 3}),
        ):
            step = asked(of=factories.instance("waiting", id=name), message=f"{name}?", schema=schema)
            answer(step.instance, "decide", value, by="ada")
        page = inbox(operator, "done")
        rows = re.findall(r'<span class="s-(\w+) state">.*?"title">(\w+)\?<.*?warn">(\w+)<', page, re.DOTALL)
        assert {name: (look, word) for look, name, word in rows} == {
            "yes": ("complete", "Approved"),
            "no": ("errored", "Refused"),
            "plain": ("errored", "Refused"),
            "else": ("queued", "Answered"),
        }

    def test_says_of_the_latest_that_there_are_more(
        self, operator: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(inbox_module, "SHOWN", 2)
        for _ in range(3):
            asked(of=factories.instance("waiting")).instance.terminate(by="zoe")
        assert "These are the latest 2." in inbox(operator, "done")

    @pytest.mark.parametrize(
        "nonsense", ["1", "x", "9-9-9", "99999999999999999999-1-1", "1-1-1' OR 1=1", "\0"]
    )
    def test_of_nonsense_is_a_page(self, operator: Client, nonsense: str) -> None:
        answer = operator.get("/approvals/", {"box": nonsense, "r": nonsense})
        assert answer.status_code == 200

    def test_is_drawn_with_few_queries(self, operator: Client, django_assert_max_num_queries: Any) -> None:
        for _ in range(12):
            asked(of=factories.instance("waiting"))
        operator.get("/approvals/")
        with django_assert_max_num_queries(20):
            operator.get("/approvals/")

    def test_reconciles_by_its_topic(self, operator: Client) -> None:
        step = asked()
        where = f"/_f/live/?topic=approvals&box=open&r={ref(step)}"
        frame = operator.get(where)
        for piece in ("boxes", "inbox", "pane", "approvals-count"):
            assert f'hx-target="#{piece}"' in frame.content.decode()
        assert operator.get(where, headers={"HX-PTag": frame.headers["HX-PTag"]}).status_code == 304
        answer(step.instance, 1, {"refund": True, "amount": 1}, by="ada")
        assert operator.get(where, headers={"HX-PTag": frame.headers["HX-PTag"]}).status_code == 200


class TestElsewhere:
    def test_a_question_for_nobody_in_particular_names_the_role_that_may_answer(
        self, operator: Client
    ) -> None:
        page = operator.get(asked().instance.get_absolute_url()).content.decode()
        assert "Needs an answer from an approver at step 1" in page
        assert re.search(r"<dt>Assigned to</dt>\s*<dd>\s*any approver\s*</dd>", page)
        assert "any approver" in inbox(operator, "open")

    def test_an_instance_that_asks_is_shown_as_approval(self, operator: Client) -> None:
        step = asked(assignees=["group:finance", "ada"], wake_at=factories.ago(hours=-2))
        page = operator.get(step.instance.get_absolute_url()).content.decode()
        assert re.search(r'<span class="chip s-approval idle big">', page)
        assert "Needs an answer from finance or ada at step 1" in page
        assert "Refund 1,240 € to ACME?" in page
        for where in ("/instances/?status=approval", "/instances/?status=open", "/", "/workflows/orders/"):
            assert "chip s-approval idle" in operator.get(where).content.decode(), where
        assert "No instances match" in operator.get("/instances/?status=waiting").content.decode()
        strip = operator.get("/instances/").content.decode()
        assert re.search(r'approval <span class="num">1</span>', strip)
        assert re.search(r'waiting <span class="num">0</span>', strip)
        home = operator.get("/").content.decode()
        headline = re.search(r"<h1[^>]*>(.*?)</h1>", home, re.DOTALL)
        assert headline is not None
        assert " ".join(re.sub(r"<[^>]+>", "", headline[1]).split()).startswith(
            "1 request has waited for an answer"
        )

    def test_one_that_was_answered_only_waits(self, operator: Client) -> None:
        step = asked()
        answer(step.instance, 1, {"refund": True, "amount": 1}, by="ada", comment="fine")
        page = operator.get(step.instance.get_absolute_url()).content.decode()
        assert re.search(r'<span class="chip s-waiting idle big">', page)
        assert "no longer takes answers" in page
        assert "Answered by <strong>ada</strong>" in page
        activity = operator.get(f"{step.instance.get_absolute_url()}?tab=activity").content.decode()
        said = " ".join(re.sub(r"<[^>]+>|[\u2068\u2069]", " ", activity).split())
        assert "ada answered decide “fine”" in said

    def test_a_finished_request_tells_its_answer(self, operator: Client) -> None:
        instance = factories.instance("complete")
        given = {"value": {"refund": True}, "comment": "fine"}
        of = "reprise:request:1:1"
        asked(of=instance, status="complete", output={"type": of, "payload": given})
        taken = {"state": "consumed", "consumed_by": 1, "consumed_generation": 1}
        factories.event(instance, of, given, sent_by="ada", dedup_key=of, **taken)
        page = operator.get(f"{instance.get_absolute_url()}?step=1").content.decode()
        assert "by ada" in page
        assert "“fine”" in page
        assert "Send answer" not in page

    def test_a_form_without_script_has_its_token(self, operator: Client) -> None:
        step = asked()
        for where in (step.instance.get_absolute_url(), "/approvals/"):
            page = operator.get(where).content.decode()
            assert re.search(rf'name="csrfmiddlewaretoken" value="\w+" form="answer-{ref(step)}"', page)

    def test_a_reserved_event_cannot_be_sent_by_form(self, operator: Client) -> None:
        step = asked()
        where = f"{step.instance.get_absolute_url()}events/"
        answer = operator.post(where, {"type": "reprise:request:1:1", "payload": "{}", "token": "x"})
        assert answer.status_code == 422
        assert "reserved" in answer.content.decode()
        assert not Event.objects.exists()


@pytest.mark.parametrize("evil", EVIL, ids=[evil[:16] for evil in EVIL])
def test_what_is_asked_and_answered_is_text(operator: Client, evil: str) -> None:
    schema = {
        "type": "object",
        "description": evil,
        "properties": {
            evil[:200].replace("/", ""): {
                "type": "string",
                "title": evil,
                "description": evil,
                "default": evil,
            },
            "choice": {"enum": [evil, "b"], "title": evil},
        },
    }
    step = asked(message=f"{evil}\n{evil}", schema=schema, assignees=[evil[:150], "oli"], name=evil[:200])
    places = [
        step.instance.get_absolute_url(),
        "/approvals/",
        f"/_f/live/?topic=approvals&box=open&r={ref(step)}",
    ]
    for where in (*places, "/instances/", "/"):
        assert_is_text(operator.get(where).content.decode(), evil)
    sent = {"answer/choice": evil, "comment": evil}
    assert_is_text(send(operator, step, place="mine", **sent | {"answer/choice": evil + "?"})[1], evil)
    answer(step.instance, 1, {"choice": evil}, by=evil[:100], comment=evil[:1_000])
    for where in places:
        assert_is_text(operator.get(where).content.decode(), evil)
    assert_is_text(send(operator, step, **sent)[1], evil)
    assert_is_text(inbox(operator, "done"), evil)


def test_a_box_of_many_is_asked_for_with_as_few_conditions_as_a_box_of_two(operator: Client) -> None:
    """A condition for each row takes longer to plan than the rows to read."""
    read = []
    for count in (2, 20):
        for _ in range(count):
            factories.request(factories.instance("waiting"))
        with CaptureQueriesContext(connection) as sent:
            inbox(operator, "open")
        read.append([one["sql"].count(" AND ") + one["sql"].count(" OR ") for one in sent])
    assert read[0] == read[1]


def text_of(page: str) -> str:
    return re.sub(r"<[^>]+>", "", page)


def titles(page: str) -> list[str]:
    return re.findall(r'<span class="title">(.*?)</span>', page)


def pane(page: str) -> list[str]:
    return re.findall(r'<h2 class="question">(.*?)</h2>', page)


def badge(page: str) -> int:
    found = re.search(r'<span id="approvals-count" class="badge"( hidden)?>\s*(\d+)', page)
    assert found
    assert (found[1] is not None) == (found[2] == "0")
    return int(found[2])
