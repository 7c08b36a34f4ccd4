"""What a type declares as secret: the program gets it, wherever it comes from and whatever dies; nothing else does."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

import pytest
from django.core.management import call_command
from django.db import connection
from pydantic import BaseModel, Secret, SecretStr, StringConstraints

from engine import Event, RollbackContext, Schedule, SecretKeyError, WorkflowStep, branch, workflow, workflows
from engine.declare.secrets import decrypted
from engine.models import Event as EventRow
from engine.models import Instance, ScheduleRow, Step
from engine.steer import events, requests
from engine.steer.schedules import run_now
from engine.values.errors import DedupConflictError, InvalidParamsError, InvalidValueError
from engine.values.serialization.envelope import KEY
from engine.worker.schedules import sync
from tests.records import step as step_of
from tests.stories import run_to_end, running_shift, wait_for, wait_until

pytestmark = [pytest.mark.usefixtures("engine_db", "own_registry")]

CANARY = "canary-4711-hunter2"
X = SecretStr(CANARY)
OTHER_KEY = "quite another key, which is as long as a key of Django's has to be"


class Login(BaseModel):
    user: str
    password: SecretStr


class Undo(BaseModel):
    branch: str
    output: Login


class Code(BaseModel):
    pin: SecretStr
    note: str = ""


Word = Annotated[str, StringConstraints(pattern=r"^\p{L}+$")]  # pydantic knows this pattern, Python does not


def stored(table: str, column: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT coalesce(string_agg({column}::text, ' '), '') FROM {table}")
        return str(cursor.fetchone()[0])


def lose_the_key(settings: Any) -> str:
    """Start the next worker under another key; return the one that it lacks."""
    before: str = settings.SECRET_KEY
    settings.SECRET_KEY = OTHER_KEY
    return before


class TestTheProgramGetsIt:
    def test_from_its_params(self) -> None:
        @workflow
        async def sign_in(step: WorkflowStep, login: Login) -> int:
            def body(password: SecretStr) -> int:
                return len(password.get_secret_value())

            return await step.do("sign-in", body, login.password)

        instance = run_to_end(sign_in.start({"user": "ada", "password": CANARY}))  # type: ignore[arg-type]
        assert instance.output == len(CANARY)
        assert CANARY not in stored("engine_instance", "params")
        assert instance.params["user"] == "ada"

    def test_from_a_step_and_from_another_workflow(self) -> None:
        def make() -> Login:
            return Login(user="ada", password=X)

        @workflow
        async def child(step: WorkflowStep, login: Login) -> Login:
            return login

        @workflow
        async def parent(step: WorkflowStep) -> str:
            login = await step.do("make", make)
            assert isinstance(login.password, SecretStr)
            back = await step.run_workflow("child", child, login)
            handle = await step.spawn("spawned", child, login)
            result = await step.wait_for_instance("wait", handle)
            [third] = await step.parallel("side-by-side", branch(child, login))
            values = [one.password.get_secret_value() for one in (login, back, result.output, third)]
            return "same" if values == [CANARY] * 4 else "lost"

        assert run_to_end(parent.start()).output == "same"
        for table, column in (
            ("engine_instance", "params"),
            ("engine_instance", "output"),
            ("engine_step", "output"),
        ):
            assert CANARY not in stored(table, column)
            assert KEY in stored(table, column)

    def test_from_an_event_and_from_an_answer(self) -> None:
        arrived = Event("code-came", Code)
        gone: list[str] = []

        def spend(pin: SecretStr) -> None:
            gone.append(pin.get_secret_value())

        @workflow
        async def ask(step: WorkflowStep) -> None:
            event = await step.wait_for_event("code", arrived)
            await step.do("spend", spend, event.payload.pin)
            by_name = await step.wait_for_event("again", "code-came")
            await step.do("spend", spend, by_name.payload["pin"])
            answer = await step.request("pin", Code, message="The PIN?")
            await step.do("spend", spend, answer.value.pin)
            only = await step.request("only", SecretStr, message="Again?")
            await step.do("spend", spend, only.value)

        instance = ask.start()
        instance.send_event(arrived, {"pin": CANARY})
        instance.send_event("code-came", Code(pin=X))
        with running_shift():
            for request, value in (("pin", {"pin": CANARY}), ("only", CANARY)):
                _answer_when_asked(instance, request, value)
            wait_for(instance)
        assert instance.status == "complete"
        assert gone == [CANARY] * 4
        assert CANARY not in stored("engine_event", "payload") + stored("engine_step", "output")

    def test_in_the_rollback_of_a_step_after_a_new_worker_took_over(self) -> None:
        undone: list[str] = []

        def undo(ctx: RollbackContext) -> None:
            undone.append(ctx.output.password.get_secret_value())
            undone.append(ctx.args[0].get_secret_value())

        def reserve(password: SecretStr) -> Login:
            return Login(user="ada", password=password)

        @workflow
        async def fails(step: WorkflowStep, login: Login) -> None:
            await step.do("reserve", reserve, login.password, rollback=undo)
            await step.wait_for_event("go")
            await step.fail("no")

        instance = fails.start(Login(user="ada", password=X))
        with running_shift():
            wait_for(instance, "waiting")
        instance.send_event("go")
        assert run_to_end(instance).status == "errored"
        assert undone == [CANARY, CANARY]

    def test_in_what_compensates_a_branch(self) -> None:
        seen: list[Any] = []

        @workflow
        async def good(step: WorkflowStep) -> Login:
            return Login(user="ada", password=X)

        @workflow
        async def bad(step: WorkflowStep) -> None:
            await step.sleep("a moment", 0.3)
            await step.fail("no")

        @workflow
        async def typed(step: WorkflowStep, about: Undo) -> None:
            await step.do("see", lambda: seen.append(about.output.password))

        @workflow
        async def untyped(step: WorkflowStep, about: dict[str, Any]) -> None:
            await step.do("see", lambda: seen.append(about["output"]["password"]))

        @workflow
        async def trip(step: WorkflowStep) -> None:
            await step.parallel(
                "book",
                branch(good, compensate_with=typed),
                branch(good, compensate_with=untyped),
                branch(bad),
            )

        instance = trip.start()
        with running_shift():
            wait_for(instance)
            for name in ("typed", "untyped"):
                wait_for(Instance.objects.get(workflow=name))
        assert seen == [X, X]
        assert CANARY not in stored("engine_instance", "params")

    def test_after_a_restart_from_a_step(self) -> None:
        seen: list[SecretStr] = []

        def make() -> SecretStr:
            return X

        @workflow
        async def twice(step: WorkflowStep, login: Login) -> SecretStr:
            made = await step.do("make", make)
            await step.do("see", lambda: seen.append(made))
            return login.password

        instance = run_to_end(twice.start(Login(user="a", password=X)))
        instance.restart(from_step="see")
        run_to_end(instance)
        assert seen == [X, X]
        assert decrypted(instance.output) == CANARY


def _answer_when_asked(instance: Instance, request: str, value: Any) -> None:
    asked = Step.objects.filter(instance=instance, name=request, status="waiting")
    wait_until(asked.exists, what=f"request {request}")
    requests.answer(instance, request, value, by="test")


class TestEquality:
    """Encrypted again, a secret is another text: the values are compared."""

    def test_the_same_event_again_is_one_event(self) -> None:
        came = Event("code-came", Code)

        @workflow
        async def waits(step: WorkflowStep) -> None:
            await step.wait_for_event("code", came)

        instance = waits.start()
        first = instance.send_event(came, {"pin": CANARY}, "key-1")
        assert instance.send_event(came, Code(pin=X), "key-1") == first
        with pytest.raises(DedupConflictError) as caught:
            instance.send_event(came, {"pin": "another"}, "key-1")
        assert CANARY not in str(caught.value)
        assert EventRow.objects.count() == 1

    def test_a_schedule_with_a_secret_is_not_written_anew_by_each_cluster(self) -> None:
        @workflow(schedules=[Schedule("0 9 * * *", params={"user": "ada", "password": CANARY})])
        async def nightly(step: WorkflowStep, login: Login) -> int:
            return len(login.password)

        sync()
        row = ScheduleRow.objects.get(workflow="nightly")
        assert CANARY not in stored("engine_schedule", "params")
        again = workflow("nightly", schedules=[Schedule("0 9 * * *", params=Login(user="ada", password=X))])
        again(nightly.handler)  # as another process declares it
        sync()
        assert ScheduleRow.objects.get(workflow="nightly").params == row.params
        instance = run_to_end(run_now(row))
        assert instance.output == len(CANARY)

    def test_another_secret_of_a_schedule_is_taken_over(self) -> None:
        def declare(password: str) -> None:
            @workflow(
                "nightly", schedules=[Schedule("0 9 * * *", params={"user": "a", "password": password})]
            )
            async def nightly(step: WorkflowStep, login: Login) -> None: ...

        declare("before")
        sync()
        declare("after")
        sync()
        assert decrypted(ScheduleRow.objects.get(workflow="nightly").params) == {
            "user": "a",
            "password": "after",
        }

    def test_get_or_start_returns_the_instance_that_is_there(self) -> None:
        @workflow
        async def waits(step: WorkflowStep, login: Login) -> None: ...

        one, _ = waits.get_or_start("id-1", Login(user="a", password=X))
        other, is_new = waits.get_or_start("id-1", Login(user="a", password=X))
        assert (other, is_new) == (one, False)


class TestNothingIsSmuggledIn:
    """An envelope comes from the store, or it is none."""

    @pytest.fixture
    def copied(self) -> dict[str, Any]:
        """What a reader of the database could copy."""

        @workflow
        async def victim(step: WorkflowStep, login: Login) -> None: ...

        found: dict[str, Any] = victim.start(Login(user="a", password=X)).params["password"]
        return found

    def test_by_params_an_event_or_an_answer(self, copied: dict[str, Any]) -> None:
        came = Event("code-came", Code)

        @workflow
        async def thief(step: WorkflowStep, given: dict[str, Any]) -> Any:
            await step.request("any", dict[str, Any], message="?")
            return given

        @workflow
        async def typed(step: WorkflowStep, login: Login) -> None: ...

        instance = thief.start({})
        with running_shift():
            wait_for(instance, "waiting")
        acts: list[Callable[[], object]] = [
            lambda: thief.start({"a": copied}),
            lambda: thief.start(copied),
            lambda: typed.start({"user": "a", "password": copied}),  # type: ignore[arg-type]
            lambda: events.send_event(instance, "untyped", copied),
            lambda: events.send_event(instance, "untyped", [{"a": copied}]),
            lambda: events.send_event(instance, came, {"pin": copied}),
            lambda: requests.answer(instance, "any", {"a": copied}, by="thief"),
        ]
        for act in acts:
            with pytest.raises((InvalidParamsError, InvalidValueError)) as caught:
                act()
            assert CANARY not in str(caught.value)
        many = thief.start_many([{"params": {"a": copied}}])
        assert [error["code"] for error in many.errors] == ["invalid_params"]
        assert Instance.objects.filter(workflow__in=["thief", "typed"]).count() == 1
        assert EventRow.objects.count() == 0

    def test_by_what_a_step_or_a_handler_returns(self, copied: dict[str, Any]) -> None:
        def body() -> Any:
            return copied

        @workflow
        async def returns(step: WorkflowStep) -> Any:
            return copied

        @workflow
        async def does(step: WorkflowStep) -> None:
            await step.do("body", body)

        for each in (returns, does):
            instance = run_to_end(each.start())
            assert instance.status == "errored"
            assert "is reserved" in instance.error["message"]

    def test_a_mask_that_is_sent_back_is_refused_with_the_place(self) -> None:
        @workflow
        async def typed(step: WorkflowStep, login: Login) -> None: ...

        for mask in ("**********", "••••••"):
            with pytest.raises(InvalidParamsError) as caught:
                typed.start({"user": "a", "password": mask})  # type: ignore[arg-type]
            [error] = caught.value.errors
            assert (error["path"], error["code"]) == ("password", "secret_mask")


class TestAnswers:
    """They are checked and encrypted by the recorded schema, where the type need not be known."""

    @pytest.fixture
    def asked(self) -> Callable[[Any], Instance]:
        def ask(schema: Any) -> Instance:
            @workflow("asks")
            async def asks(step: WorkflowStep) -> Any:
                return repr((await step.request("ask", schema, message="?")).value)

            instance = asks.start()
            with running_shift():
                wait_for(instance, "waiting")
            return instance

        return ask

    @pytest.mark.parametrize(
        ("schema", "value"),
        [
            (SecretStr, CANARY),
            (SecretStr | None, CANARY),
            (Code, {"pin": CANARY}),
            (list[SecretStr], [CANARY, CANARY]),
            (dict[str, SecretStr], {"a": CANARY}),
            (dict[str, list[Code]], {"a": [{"pin": CANARY}]}),
            (tuple[int, SecretStr], [1, CANARY]),
            (Secret[dict[str, str]], {"a": CANARY}),
            (Secret[Code], {"pin": CANARY}),
            (Code | int, {"pin": CANARY}),
            (Login | Code, {"pin": CANARY}),
            (dict[Word, SecretStr], {"a": CANARY}),
            (Word | SecretStr, CANARY),
        ],
        ids=str,
    )
    def test_a_secret_is_encrypted_wherever_it_stands(
        self, asked: Callable[[Any], Instance], schema: Any, value: Any
    ) -> None:
        instance = asked(schema)
        event = requests.answer(instance, "ask", value, by="ada")
        assert CANARY not in json.dumps(event.payload)
        assert requests.is_same_answer(event, value)
        instance = run_to_end(instance)
        assert instance.status == "complete"
        assert CANARY not in str(instance.output)
        assert CANARY not in stored("engine_event", "payload") + stored("engine_step", "output")

    def test_what_is_no_secret_stays_in_clear(self, asked: Callable[[Any], Instance]) -> None:
        event = requests.answer(asked(Code | int), "ask", 5, by="ada")
        assert event.payload["value"] == 5

    def test_a_wrong_answer_is_refused_without_showing_it(self, asked: Callable[[Any], Instance]) -> None:
        class Strict(BaseModel):
            pin: SecretStr
            number: Secret[int]
            note: str

        instance = asked(Strict)
        for wrong in (
            {"pin": [CANARY], "number": CANARY, "note": 1},
            {"pin": CANARY, "number": 1},
            [CANARY],
            CANARY,
            {"pin": CANARY, "number": 1, "note": [CANARY]},
        ):
            with pytest.raises(InvalidParamsError) as caught:
                requests.answer(instance, "ask", wrong, by="ada")
            assert CANARY not in str(caught.value)
        assert EventRow.objects.count() == 0

    @pytest.mark.parametrize(
        ("wrong", "path", "said"),
        [
            ({"extra": CANARY}, "extra", "This field is unknown."),
            ({"at": "yesterday"}, "at", "This is not a valid date-time."),
            ({"kind": "c"}, "kind", "It does not match the schema."),
        ],
    )
    def test_a_wrong_answer_is_told_what_is_wrong_where_a_secret_is_beside_it(
        self, asked: Callable[[Any], Instance], wrong: dict[str, str], path: str, said: str
    ) -> None:
        class Strict(BaseModel, extra="forbid"):
            pin: SecretStr
            at: datetime | None = None
            kind: Literal["a", "b"] = "a"

        with pytest.raises(InvalidParamsError) as caught:
            requests.answer(asked(Strict), "ask", {"pin": CANARY, **wrong}, by="ada")
        assert [(error["path"], error["message"]) for error in caught.value.errors] == [(path, said)]

    def test_a_mask_is_refused_at_its_field(self, asked: Callable[[Any], Instance]) -> None:
        with pytest.raises(InvalidParamsError) as caught:
            requests.answer(asked(dict[str, Code]), "ask", {"a": {"pin": "••••••"}}, by="ada")
        assert [error["path"] for error in caught.value.errors] == ["a/pin"]


class TestWithoutTheKey:
    """Nothing is lost: the instance is paused and says which key is missing, and continues when it is back."""

    @pytest.fixture
    def waiting(self) -> Instance:
        def make() -> SecretStr:
            return X

        @workflow
        async def keeps(step: WorkflowStep, login: Login) -> str:
            made = await step.do("make", make, rollback=lambda ctx: None)
            await step.wait_for_event("go")
            return "kept" if made == login.password == X else "lost"

        instance = keeps.start(Login(user="a", password=X))
        with running_shift():
            wait_for(instance, "waiting")
        return instance

    def test_the_instance_is_paused_and_goes_on_with_the_key(self, waiting: Instance, settings: Any) -> None:
        before = (waiting.params, step_of(waiting, "make").output)
        missing = lose_the_key(settings)
        waiting.send_event("go")
        with running_shift():
            wait_for(waiting, "paused")
        assert waiting.pause_reason["type"] == "SecretKeyError"
        assert "this process has key" in waiting.pause_reason["message"]
        assert (waiting.params, step_of(waiting, "make").output) == before
        settings.SECRET_KEY_FALLBACKS = [missing]
        waiting.resume()
        assert run_to_end(waiting).output == "kept"

    def test_a_step_that_cannot_be_read_pauses_it_too(self, settings: Any) -> None:
        def make() -> SecretStr:
            return X

        undone: list[Any] = []

        @workflow
        async def plain(step: WorkflowStep) -> None:
            await step.do("make", make, rollback=lambda ctx: undone.append(ctx.output))
            await step.wait_for_event("go")
            await step.fail("no")

        instance = plain.start()
        with running_shift():
            wait_for(instance, "waiting")
        missing = lose_the_key(settings)
        instance.send_event("go")
        with running_shift():
            wait_for(instance, "paused")
        assert instance.pause_reason["type"] == "SecretKeyError"
        assert undone == []
        settings.SECRET_KEY_FALLBACKS = [missing]
        instance.resume()
        assert run_to_end(instance).status == "errored"
        assert undone == [X]

    def test_a_schedule_says_so_and_starts_nothing(self, settings: Any) -> None:
        @workflow(schedules=[Schedule("0 9 * * *", params={"user": "ada", "password": CANARY})])
        async def nightly(step: WorkflowStep, login: Login) -> None: ...

        sync()
        row = ScheduleRow.objects.get(workflow="nightly")
        lose_the_key(settings)
        with pytest.raises(SecretKeyError):
            run_now(row)
        assert Instance.objects.count() == 0

    def test_an_event_under_its_dedup_key_cannot_be_compared_and_is_not_written_again(
        self, settings: Any
    ) -> None:
        came = Event("code-came", Code)

        @workflow
        async def waits(step: WorkflowStep) -> None: ...

        instance = waits.start()
        instance.send_event(came, {"pin": CANARY}, "key-1")
        lose_the_key(settings)
        with pytest.raises(SecretKeyError):
            instance.send_event(came, {"pin": CANARY}, "key-1")
        assert EventRow.objects.count() == 1


class TestErrors:
    """What is recorded of a failure shows no secret."""

    def test_a_value_that_does_not_fit_beside_a_secret(self) -> None:
        def body() -> Login:
            return {"user": ["wrong"], "password": CANARY}  # type: ignore[return-value]

        @workflow
        async def returns(step: WorkflowStep) -> None:
            await step.do("body", body)

        instance = run_to_end(returns.start())
        assert instance.status == "errored"
        assert "user" in instance.error["message"]
        recorded = (
            stored("engine_step", "error")
            + stored("engine_attempt", "error")
            + stored("engine_instance", "error")
        )
        assert CANARY not in recorded

    def test_a_model_that_a_body_cannot_make(self) -> None:
        def body(password: SecretStr) -> None:
            Login.model_validate({"password": password.get_secret_value()})

        @workflow
        async def fails(step: WorkflowStep, login: Login) -> None:
            await step.do("body", body, login.password, max_attempts=1)

        instance = run_to_end(fails.start(Login(user="a", password=X)))
        assert (
            instance.error["message"] == "1 validation error for Login\nuser\n  Field required [type=missing]"
        )
        assert CANARY not in stored("engine_attempt", "error") + stored("engine_step", "error")

    def test_a_type_that_has_changed(self) -> None:
        def make() -> Login:
            return Login(user="a", password=X)

        @workflow
        async def changes(step: WorkflowStep) -> None:
            await step.do("make", make)
            await step.wait_for_event("go")

        instance = changes.start()
        with running_shift():
            wait_for(instance, "waiting")

        def make_number() -> int:
            return 5

        del workflows._workflows["changes"]

        @workflow("changes")
        async def changed(step: WorkflowStep) -> None:
            await step.do("make", make_number)

        instance.send_event("go")
        with running_shift():
            wait_for(instance, "paused")
        assert instance.pause_reason["type"] == "NonDeterminismError"
        assert "••••••" in instance.pause_reason["message"]
        assert KEY not in instance.pause_reason["message"]


def test_a_stored_secret_goes_with_its_instance() -> None:
    @workflow
    async def brief(step: WorkflowStep, login: Login) -> SecretStr:
        return login.password

    instance = run_to_end(brief.start(Login(user="a", password=X)))
    instance.delete()
    assert not Instance.objects.exists()
    assert not Step.objects.exists()


def test_a_declaration_whose_secret_could_not_be_kept_is_refused() -> None:
    from engine import DeclarationError

    with pytest.raises(DeclarationError, match="a secret cannot be the key of a dict"):

        @workflow
        async def keyed(step: WorkflowStep, given: dict[SecretStr, int]) -> None: ...


class TestWhichKeysAreNeeded:
    """`manage.py secretkeys` says when an old key may be removed."""

    def told(self) -> tuple[int, dict[str, tuple[int, str]]]:
        out, code = io.StringIO(), 0
        try:
            call_command("secretkeys", "--json", stdout=out)
        except SystemExit as ended:
            code = int(str(ended.code))
        return code, {row["key"]: (row["stored"], row["use"]) for row in json.loads(out.getvalue())}

    def test_counts_stored_secrets_by_key(self, settings: Any) -> None:
        @workflow
        async def keeps(step: WorkflowStep, login: list[Login]) -> SecretStr:
            return login[0].password

        [first] = self.told()[1]
        run_to_end(keeps.start([Login(user="a", password=X), Login(user="b", password=X)]))
        assert self.told() == (0, {first: (3, "encrypts and decrypts")})
        settings.SECRET_KEY_FALLBACKS = [lose_the_key(settings)]
        keeps.start([Login(user="a", password=X)])
        code, rows = self.told()
        assert code == 0
        assert [*rows.values()] == [(1, "encrypts and decrypts"), (3, "decrypts")]
        settings.SECRET_KEY_FALLBACKS = []
        code, rows = self.told()
        assert code == 1
        assert rows[first] == (3, "missing")

    def test_counts_those_in_the_params_of_an_earlier_generation(self, settings: Any) -> None:
        @workflow
        async def keeps(step: WorkflowStep, login: Login) -> None: ...

        instance = run_to_end(keeps.start(Login(user="a", password=X)))
        [first] = self.told()[1]
        settings.SECRET_KEY_FALLBACKS = [lose_the_key(settings)]
        run_to_end(instance.restart(params=Login(user="a", password=X)))
        assert self.told()[1][first] == (1, "decrypts")

    def test_prints_a_table_without_any_key(self, settings: Any) -> None:
        out = io.StringIO()
        call_command("secretkeys", stdout=out)
        assert out.getvalue().split()[1:] == ["0", "encrypts", "and", "decrypts"]
        assert settings.SECRET_KEY not in out.getvalue()
