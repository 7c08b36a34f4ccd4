"""What a sensitive step returned, or was given, is in no error, no log, no page and no answer of the command line."""

from __future__ import annotations

import json
import logging
from io import StringIO
from typing import Annotated, Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from pydantic import AfterValidator, BaseModel, Field

from engine import StepError, WorkflowStep, define_step, workflow
from engine.declare.registry import Workflow
from engine.models import Attempt, Instance, Log, Step
from engine.worker.database.journal import Journal
from tests import shifts
from tests.stories import run_to_end, running_shift, wait_for

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")

SECRET = "s3cr3t-4711"


def refuse(value: str) -> str:
    raise ValueError(f"{value} is not good")


class Login(BaseModel):
    name: str
    age: int


class Tagged(BaseModel):
    kind: Annotated[int, Field(gt=3)] = 4


def number() -> int:
    return SECRET  # type: ignore[return-value]


def model() -> Login:
    return {"name": SECRET, "age": SECRET}  # type: ignore[return-value]


def keys() -> dict[str, int]:
    return {SECRET: "no number"}  # type: ignore[dict-item]


def quoted() -> Annotated[str, AfterValidator(refuse)]:
    return SECRET


def unannotated() -> Any:
    return {SECRET: object()}


def not_written() -> list[Login]:
    return [Login.model_construct(name=SECRET, age=SECRET)]  # type: ignore[arg-type]


async def raised_by_pydantic() -> None:
    """What the body itself validates."""
    Login.model_validate({"name": "n", "age": SECRET})


BODIES = [number, model, keys, quoted, unannotated, not_written, raised_by_pydantic]


async def plainly(step: WorkflowStep, body: Any, **options: Any) -> None:
    await step.do("token", body, **options)


async def caught(step: WorkflowStep, body: Any, **options: Any) -> None:
    try:
        await step.do("token", body, **options)
    except StepError as error:
        raise RuntimeError("it went wrong") from error


async def asynchronously(step: WorkflowStep, body: Any, **options: Any) -> None:
    async def fetch() -> Any:
        return body()

    fetch.__annotations__ = body.__annotations__
    await step.do("token", fetch, **options)


async def nested(step: WorkflowStep, body: Any, **options: Any) -> None:
    async def outer() -> None:
        await step.do("token", body, **options)

    await step.do("outer", outer)


async def mapped(step: WorkflowStep, body: Any, **options: Any) -> None:
    def each(item: int, index: int) -> Any:
        return body()

    each.__annotations__ = {"return": body.__annotations__.get("return", Any)}
    await step.map("token", [1, 2], each, **options)


async def atomically(step: WorkflowStep, body: Any, **options: Any) -> None:
    await step.do("token", body, atomic=True, **options)


async def retried(step: WorkflowStep, body: Any, **options: Any) -> None:
    """With a delay function, which is given the error."""
    await step.do("token", body, delay=lambda ctx, error: float(str(error)), **options)


async def undone(step: WorkflowStep, body: Any, **options: Any) -> None:
    wrong = {
        "rollback": lambda ctx: Login.model_validate(ctx.error.details),
        "rollback_options": {"delay": 0},
    }
    await step.do("token", body, **wrong, **options)


WAYS = [plainly, caught, asynchronously, nested, mapped, atomically, retried, undone]
TRIED = [
    (way, body) for way in WAYS for body in BODIES if way in (plainly, mapped) or body in (number, quoted)
]


@pytest.mark.parametrize(("way", "body"), TRIED, ids=lambda one: one.__name__)
def test_an_output_that_is_refused_is_not_shown(
    way: Any, body: Any, caplog: pytest.LogCaptureFixture, client: Client
) -> None:
    @workflow(name="story")
    async def story(step: WorkflowStep) -> None:
        await way(step, body, sensitive=True, max_attempts=1)

    with caplog.at_level(logging.DEBUG):
        instance = run_to_end(story.start())
    assert instance.status == "errored"
    assert Step.objects.filter(instance=instance, name="token").exists()
    assert_hidden(instance, caplog.text, client)


@pytest.mark.parametrize("body", [number, quoted], ids=lambda one: one.__name__)
def test_without_the_mark_the_look_finds_what_it_looks_for(body: Any) -> None:
    def quoting() -> Annotated[str, AfterValidator(refuse)]:
        return SECRET

    @workflow(name="story")
    async def story(step: WorkflowStep) -> None:
        await step.do("token", quoting)

    assert SECRET in everything(run_to_end(story.start()))


def test_the_program_gets_the_value_and_the_reason_of_a_refusal_its_rule() -> None:
    @workflow(name="story")
    async def story(step: WorkflowStep) -> bool:
        return await step.do("token", lambda: SECRET, sensitive=True) == SECRET

    @workflow(name="refused")
    async def refused(step: WorkflowStep) -> None:
        await step.do("token", number, sensitive=True)

    assert run_to_end(story.start()).output is True
    error = run_to_end(refused.start()).error
    assert error["message"] == (
        'The output of step "token" cannot be stored. At $: It breaks the rule int_parsing. '
        "Where and why is not shown, because the step is sensitive."
    )


@pytest.mark.parametrize("is_map", [False, True])
@pytest.mark.parametrize("way", ["do", "rollback"])
def test_a_recorded_output_that_new_code_refuses_is_not_shown(
    is_map: bool, way: str, caplog: pytest.LogCaptureFixture, client: Client
) -> None:
    def declare(annotation: Any) -> Workflow[None, None]:
        from engine import workflows

        def token(*args: int) -> Any:
            return SECRET

        def each(item: int, index: int) -> Any:
            return SECRET

        token.__annotations__ = each.__annotations__ = {"return": annotation}
        workflows._workflows.pop("story", None)

        @workflow(name="story")
        async def story(step: WorkflowStep) -> None:
            options: dict[str, Any] = {"sensitive": True}
            if way == "rollback":
                options["rollback"] = lambda ctx: None
            if is_map:
                await step.map("token", [1], each, **options)
            else:
                await step.do("token", token, **options)
            await step.wait_for_event("go")
            await step.fail("undo it")

        return story

    instance = declare(str).start()
    with running_shift():
        wait_for(instance, "waiting")
    declare(Annotated[str, AfterValidator(refuse)])
    with caplog.at_level(logging.DEBUG), running_shift():
        instance.send_event("go")
        wait_for(instance, "paused")
    assert "Recorded: (a sensitive value)." in instance.pause_reason["message"]
    assert_hidden(instance, caplog.text, client)


@pytest.mark.parametrize("is_map", [False, True])
def test_arguments_of_a_sensitive_step_that_are_refused_are_not_shown(
    is_map: bool, caplog: pytest.LogCaptureFixture, client: Client
) -> None:
    @define_step("token", sensitive=True)
    def token(login: Annotated[str, AfterValidator(refuse)], index: int) -> str:
        return login

    @workflow(name="story")
    async def story(step: WorkflowStep) -> None:
        if is_map:
            await step.map("token", [SECRET], token)
        else:
            await step.run(token, SECRET, 1)

    with caplog.at_level(logging.DEBUG):
        instance = run_to_end(story.start())
    assert instance.error["type"] == "InvalidParamsError"
    assert "args.login: It breaks the rule value_error" in instance.error["message"]
    assert_hidden(instance, caplog.text, client)


def test_params_of_a_child_that_are_refused_are_not_quoted(
    caplog: pytest.LogCaptureFixture, client: Client
) -> None:
    @workflow(name="child")
    async def child(step: WorkflowStep, params: Login) -> None:
        """Is not started."""

    @workflow(name="story")
    async def story(step: WorkflowStep) -> None:
        token = await step.do("token", lambda: SECRET, sensitive=True)
        await step.run_workflow("child", child, {"name": "n", "age": token})  # type: ignore[arg-type]

    with caplog.at_level(logging.DEBUG):
        instance = run_to_end(story.start())
    assert instance.error["type"] == "InvalidParamsError"
    assert_hidden(instance, caplog.text, client)


def test_what_the_database_refuses_is_not_quoted(
    caplog: pytest.LogCaptureFixture, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its errors quote the records, in their detail and context."""
    execute = Journal._execute

    async def refusing(journal: Journal, batch: Any) -> Any:
        if any(record.output for _, writes in batch for record in writes.steps.values()):
            await journal._connection.execute(
                "SELECT (%(text)s::jsonb)", {"text": json.dumps({SECRET: 1}) + "x"}
            )
        return await execute(journal, batch)

    monkeypatch.setattr(Journal, "_execute", refusing)

    @workflow(name="story")
    async def story(step: WorkflowStep) -> None:
        await step.do("token", lambda: SECRET, sensitive=True)

    with caplog.at_level(logging.DEBUG):
        instance = shifts.run_to_end(story.start())
    assert instance.status == "errored"
    assert "invalid input syntax for type json" in instance.error["message"]
    assert_hidden(instance, caplog.text, client)


def assert_hidden(instance: Instance, logged: str, client: Client) -> None:
    for where, text in {"log": logged, "tables": everything(instance), "command": told(instance)}.items():
        assert SECRET not in text, where
    client.force_login(User.objects.create_superuser("ada"))
    where = f"/workflows/story/instances/{instance.id}/"
    for page in (where, f"{where}restart/", f"/_f{where}steps/1/"):
        answer = client.get(page)
        assert SECRET not in answer.content.decode(), page
        assert answer.status_code == 200 or page.startswith("/_f"), page


def everything(instance: Instance) -> str:
    """Return everything recorded about an instance, except outputs of complete sensitive steps."""
    steps = Step.objects.filter(instance=instance)
    return repr(
        (
            list(Instance.objects.filter(key=instance.key).values()),
            list(steps.exclude(sensitive=True, status="complete").values()),
            list(steps.values("error")),
            list(Attempt.objects.filter(instance=instance).values()),
            list(Log.objects.filter(instance=instance).values()),
        )
    )


def told(instance: Instance) -> str:
    said = StringIO()
    for form in ([], ["--json"]):
        call_command("workflow", "show", f"story/{instance.id}", "--full", *form, stdout=said)
    return said.getvalue()
