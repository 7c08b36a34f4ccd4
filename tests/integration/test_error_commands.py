"""`workflow errors …`: groups of errors on the command line, and the search for their instances."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command

from engine import WorkflowStep, workflow
from engine.models import Audit
from tests.integration.test_command import answer, misused, refused, run
from tests.stories import run_to_end

pytestmark = [pytest.mark.usefixtures("engine_db", "own_registry")]


def fail(region: str) -> str:
    if region == "eu":
        raise ConnectionError("The bank does not answer.")
    return "charged"


@pytest.fixture
def orders() -> Any:
    """Instances of two workflows: two that failed alike, one that failed elsewhere, and two that are complete."""

    async def handle(step: WorkflowStep, region: str) -> str:
        return await step.do("charge", fail, region, max_attempts=2, delay=0)

    made = {name: workflow(name)(handle) for name in ("orders", "refunds")}
    for number, region in enumerate(("us", "us", "eu", "eu")):
        run_to_end(made["orders"].start(region, id=f"order-{number}"))
    run_to_end(made["refunds"].start("eu", id="refund-1"))
    return made["orders"]


def fingerprint(name: str = "orders") -> str:
    (found,) = answer("errors", "list", "--workflow", name, "--state", "all")["groups"]
    return str(found["fingerprint"])


def test_errors_are_listed_the_latest_first_page_by_page(orders: Any) -> None:
    one, other = fingerprint("refunds"), fingerprint("orders")
    lines = run("errors").splitlines()
    assert lines[0].split("  ")[0] == "FINGERPRINT"
    assert lines[1].split() == [one, *lines[1].split()[1:-5], "1", "0", "2", "refunds,", "charge"]
    assert lines[2].strip() == "ConnectionError: The bank does not answer."
    assert lines[3].split()[-5:] == ["2", "0", "4", "orders,", "charge"]
    assert max(map(len, lines)) <= 80
    page = answer("errors", "list", "--limit", "1")
    assert [group["fingerprint"] for group in page["groups"]] == [one]
    rest = answer("errors", "list", "--before", page["older"])
    assert [group["fingerprint"] for group in rest["groups"]] == [other]
    assert rest["older"] is None
    assert (
        run("errors", "list", "--limit", "1").splitlines()[-1] == f"There are more: --before {page['older']}"
    )


def test_errors_are_filtered(orders: Any) -> None:
    assert len(answer("errors", "list", "--query", "BANK")["groups"]) == 2
    assert answer("errors", "list", "--query", "paper")["groups"] == []
    assert run("errors", "list", "--state", "ignored") == "No errors match.\n"
    assert 'no workflow "order"' in refused("errors", "list", "--workflow", "order").lower()


def test_a_group_is_shown_with_what_is_known_of_it(orders: Any) -> None:
    group = fingerprint()
    said = run("errors", "show", group)
    assert said.splitlines()[:2] == [f"{group}  open", "ConnectionError: The bank does not answer."]
    assert "instances   2 errored, 0 waiting for a retry, 0 paused, 0 went on" in said
    assert f"also in     refunds (1 errored, {fingerprint('refunds')})" in said
    assert "code        tests/integration/test_error_commands.py, fail" in said
    assert "100 % (2 of 2) have params = eu, usually 0 % (0 of 2)" in said
    assert "orders/order-3: step 1, attempt 2 of 2, " in said
    assert [line.split()[-1] for line in said.splitlines()[-2:]] == ["orders/order-3", "orders/order-2"]
    assert "Traceback" not in said
    assert 'raise ConnectionError("The bank does not answer.")' in run("errors", "show", group, "--full")
    assert len(answer("errors", "show", group, "--unit", "hour")["trend"]) == 24


def test_a_step_that_succeeds_again_is_told(orders: Any) -> None:
    assert "recovered" not in run("errors", "show", fingerprint())
    run_to_end(orders.start("us"))
    assert "recovered   1 success since the last failure" in run("errors", "show", fingerprint())
    assert answer("errors", "show", fingerprint())["recovered"]["count"] == 1


def test_a_resolved_group_is_open_again_when_it_fails_again(orders: Any) -> None:
    group = fingerprint()
    said = run("errors", "resolve", group, "--by", "ana", "--reason", "The bank is back.")
    assert said == f"{group} is resolved: ConnectionError: The bank does not answer.\n"
    assert [one["workflow"] for one in answer("errors")["groups"]] == ["refunds"]
    assert [one["decided_by"] for one in answer("errors", "list", "--state", "resolved")["groups"]] == ["ana"]
    assert " by ana\nreason      The bank is back.\n" in run("errors", "show", group)
    run_to_end(orders.start("eu"))
    assert answer("errors", "show", group)["group"]["state"] == "open"
    row = Audit.objects.get(verb="error-resolve")
    assert (row.workflow, row.actor, row.reason, row.data["error"]) == (
        "orders",
        "ana",
        "The bank is back.",
        group,
    )


def test_a_group_is_ignored_until_a_time_or_a_number_of_failures(orders: Any) -> None:
    group = fingerprint()
    found = answer("errors", "ignore", group, "--until", "7d", "--count", "3", "--reason", "They know.")[
        "group"
    ]
    assert (found["state"], found["ignored_count"]) == ("ignored", 3)
    until = datetime.fromisoformat(found["ignored_until"])
    assert timedelta(days=6, hours=23) < until - datetime.now(UTC) <= timedelta(days=7)
    assert "or until 3 more failures\nreason      They know.\n" in run("errors", "show", group)
    for _ in range(2):  # two attempts each
        assert answer("errors", "show", group)["group"]["state"] == "ignored"
        run_to_end(orders.start("eu"))
    assert answer("errors", "show", group)["group"]["state"] == "open"
    assert (
        answer("errors", "ignore", group, "--until", "2099-01-01T00:00Z", "--reason", "x")["group"][
            "ignored_until"
        ]
        == "2099-01-01T00:00:00+00:00"
    )
    assert answer("errors", "reopen", group)["group"]["state"] == "open"


def test_what_cannot_be_decided_is_refused(orders: Any, capsys: pytest.CaptureFixture[str]) -> None:
    group = fingerprint()
    assert "0123456789abcdef" in refused("errors", "show", "0123456789abcdef")
    assert "future" in refused("errors", "ignore", group, "--until", "2020-01-01T00:00Z", "--reason", "x")
    for words, said in (
        (["errors", "show", "0123"], '"0123" is not a fingerprint'),
        (["errors", "ignore", group], "required: --reason"),
        (["errors", "ignore", group, "--until", "soon", "--reason", "x"], "is not a duration"),
        (["errors", "ignore", group, "--until", "2099-01-01", "--reason", "x"], "has no time zone"),
        (["errors", "list", "--before", "x"], '"x" is not a key'),
    ):
        assert said in misused(capsys, *words)


def test_the_instances_of_a_group_are_searched_for(orders: Any) -> None:
    def found(query: str) -> list[str]:
        return sorted(one["id"] for one in answer("list", f"--query={query}")["instances"])

    group, other = fingerprint("orders"), fingerprint("refunds")
    assert found(f"error-group:{group}") == ["order-2", "order-3"]
    assert found(f"error-group:{group.upper()},{other}") == ["order-2", "order-3", "refund-1"]
    assert found(f"-error-group:{group}") == ["order-0", "order-1", "refund-1"]
    assert found(f"error-group:{group} id:order-3") == ["order-3"]
    assert found("error-group:0123456789abcdef") == []


def test_a_message_cannot_move_the_cursor() -> None:
    @workflow("rude")
    async def rude(step: WorkflowStep) -> None:
        raise ValueError("\x1b[2J\nno")

    run_to_end(rude.start())
    out = io.StringIO()
    call_command("workflow", "errors", "list", stdout=out)
    call_command("workflow", "errors", "show", fingerprint("rude"), "--full", stdout=out)
    assert "\x1b" not in out.getvalue()
