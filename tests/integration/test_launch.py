"""Starting instances: one for each id, with the caller's transaction, and nothing on bad input."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection, transaction
from pydantic import BaseModel, field_validator

from engine import (
    InstanceExistsError,
    InstanceNotFoundError,
    InvalidNameError,
    InvalidParamsError,
    InvalidValueError,
    LimitError,
)
from engine.declare import params
from engine.models import Audit, Instance
from engine.steer import launch
from engine.values.serialization import Codec
from tests.integration.sessions import Hints, together
from tests.sample.workflows import Item, Order, listen_for, nap, process_order, tick

ORDER = {"customer": "Ada", "items": [{"sku": "A-1", "quantity": 2}]}


@pytest.mark.django_db
def test_a_started_instance_is_queued_and_due_at_once() -> None:
    """CF-80: start returns before the handler runs."""
    instance = tick.start()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT wake_at <= clock_timestamp() FROM engine_instance WHERE key = %s", [instance.key]
        )
        assert cursor.fetchone() == (True,)
    assert (instance.status, instance.generation, instance.params) == ("queued", 1, None)
    assert instance.code == tick.fingerprint
    assert instance.deadline_at is None


@pytest.mark.django_db
def test_what_start_returns_is_what_is_stored() -> None:
    instance = process_order.start(
        Order(customer="Ada", items=[Item(sku="A", quantity=1)]), tags=["b", "a", "b"], by="cron"
    )
    stored = Instance.objects.get(key=instance.key)
    names = [field.attname for field in Instance._meta.concrete_fields]
    assert {name: getattr(instance, name) for name in names} == {
        name: getattr(stored, name) for name in names
    }
    assert stored.tags == ["b", "a"]
    assert stored.started_by == "cron"
    assert stored.deadline_at == stored.created_at + timedelta(days=1)


@pytest.mark.django_db
def test_params_are_stored_validated_with_their_defaults() -> None:
    instance = process_order.start(ORDER | {"ship_by": "2026-12-24"})  # type: ignore[arg-type]
    assert instance.params == ORDER | {"ship_by": "2026-12-24", "priority": "normal"}
    stored = launch.validate_params(process_order, ORDER | {"ship_by": "2026-12-24"})
    assert process_order.params.decode(stored) == Order(
        customer="Ada", items=[Item(sku="A-1", quantity=2)], ship_by=date(2026, 12, 24)
    )


@pytest.mark.django_db
def test_wrong_params_are_all_named_and_nothing_is_started() -> None:
    """KC-38: invalid input to start is an error to the caller, and there is no instance."""
    with pytest.raises(InvalidParamsError) as caught:
        process_order.start({"customer": 1, "items": [{"sku": "", "quantity": 0}]})  # type: ignore[arg-type]
    assert {error["path"] for error in caught.value.errors} == {"customer", "items/0/sku", "items/0/quantity"}
    assert Instance.objects.count() == 0


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"a": float("nan")}, InvalidParamsError),
        ({"a": 2**70}, (InvalidParamsError, InvalidValueError)),
        (["a\0b"], (InvalidParamsError, InvalidValueError)),
        (["\ud800"], (InvalidParamsError, InvalidValueError)),
        ({1, 2}, InvalidParamsError),
        (["x" * 2**20], LimitError),
    ],
)
def test_params_that_cannot_be_stored_start_nothing(params: Any, error: Any) -> None:
    with pytest.raises(error):
        (listen_for if isinstance(params, list) else nap).start(params)
    assert Instance.objects.count() == 0


class Moody(BaseModel):
    mood: str

    @field_validator("mood")
    @classmethod
    def _fails(cls, value: str) -> str:
        raise KeyError(value)


def test_a_validator_that_breaks_is_a_refusal_and_no_crash() -> None:
    with pytest.raises(InvalidParamsError, match="Its validator raised KeyError: 'good'"):
        params.encode_valid(Codec.of(Moody), {"mood": "good"})


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (bytes, "AAE=", '"AAE="'),
        (bytes, b"\0\1", '"AAE="'),
        (set[int], [2, 2], "[2]"),
        (tuple[int, str], (1, "a"), '[1,"a"]'),
        (datetime, datetime(2026, 1, 1, tzinfo=UTC), '"2026-01-01T00:00:00Z"'),
        (datetime, "2026-01-01T00:00:00Z", '"2026-01-01T00:00:00Z"'),
        (dict[str, UUID], {"a": UUID(int=1)}, '{"a":"00000000-0000-0000-0000-000000000001"}'),
        (Any, {"b": 1e16, "a": -0.0}, '{"b":1e+16,"a":-0.0}'),
    ],
)
def test_json_and_python_values_of_a_type_mean_the_same(annotation: Any, value: object, text: str) -> None:
    """A dict in Python is validated like the same text in a form."""
    assert params.encode_valid(Codec.of(annotation), value) == text


@pytest.mark.django_db
def test_params_for_a_workflow_that_takes_none_are_refused() -> None:
    with pytest.raises(InvalidParamsError, match="takes no params"):
        tick.start({"a": 1})  # type: ignore[call-overload]
    assert Instance.objects.count() == 0


@pytest.mark.django_db
@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "x" * 101,
        "../../x",
        "a/b",
        "a\0",
        "a\u202eb",
        "a ",
        "a\n",
        "Ⓐ",
        "{a}",
        "<script>",
        "😀",
        "-x",
        "é",
        7,
    ],
)
def test_a_wrong_id_starts_nothing(wrong: Any) -> None:
    """CF-79."""
    with pytest.raises(InvalidNameError):
        tick.start(id=wrong)
    with pytest.raises(InstanceNotFoundError):
        tick.get(wrong)
    assert Instance.objects.count() == 0


@pytest.mark.django_db
def test_ids_differ_by_case_and_by_workflow() -> None:
    for good in ("a", "A", "0", "_ok", "9ok", "x" * 100):
        assert tick.start(id=good).id == good
    assert nap.start({"seconds": 1}, id="a").id == "a"
    assert tick.get("a").key != tick.get("A").key


@pytest.mark.django_db
def test_an_id_in_use_is_refused_and_hinders_nothing_after_it() -> None:
    """CF-77."""
    first = tick.start(id="one")
    with transaction.atomic():
        with pytest.raises(InstanceExistsError, match='"one"'):
            tick.start(id="one")
        second = tick.start(id="two")
    assert list(Instance.objects.order_by("key")) == [first, second]


@pytest.mark.django_db(transaction=True)
def test_fifty_starts_of_one_id_make_one_instance() -> None:
    """The same start from many sides at once."""
    results = together(50, lambda number: tick.get_or_start("same"))
    assert Instance.objects.count() == 1
    answers = [result for result in results if not isinstance(result, Exception)]
    assert len(answers) == 50
    assert len({instance.key for instance, _ in answers}) == 1
    assert [created for _, created in answers].count(True) == 1


@pytest.mark.django_db(transaction=True)
def test_of_fifty_plain_starts_one_wins() -> None:
    results = together(50, lambda number: tick.start(id="same"))
    assert sum(isinstance(result, InstanceExistsError) for result in results) == 49
    assert Instance.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_start_takes_effect_with_the_callers_commit(hints: Hints) -> None:
    """Guarantee 19."""
    with transaction.atomic():
        instance = tick.start(id="one")
        assert hints.heard() == []
        seen = together(1, lambda number: Instance.objects.count())
    assert seen == [0]
    assert sorted(hints.heard()) == [("engine_changed", str(instance.key)), ("engine_wake", "")]


@pytest.mark.django_db(transaction=True)
def test_a_start_that_is_rolled_back_never_was(hints: Hints) -> None:
    """LC-37: the caller's transaction fails after the start."""
    with suppress(ZeroDivisionError), transaction.atomic():
        tick.start(id="one", by="somebody")
        raise ZeroDivisionError
    assert (Instance.objects.count(), Audit.objects.count(), hints.heard()) == (0, 0, [])
    assert tick.start(id="one").id == "one"


@pytest.mark.django_db
def test_a_person_who_starts_is_in_the_trail_and_a_program_is_not() -> None:
    user = User.objects.create(username="ada")
    instance = tick.start(by=user, reason="try it")
    tick.start()
    trail = Audit.objects.get()
    assert (trail.verb, trail.actor, trail.user_key, trail.reason) == ("start", "ada", str(user.pk), "try it")
    assert (trail.instance_key, trail.instance_id, trail.workflow) == (instance.key, instance.id, "tick")
    assert (trail.before, trail.after, trail.outcome) == ("", "queued", "done")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "tags", [[""], [" "], ["x" * 101], ["a\0"], [1], "text", [str(n) for n in range(51)]]
)
def test_wrong_tags_start_nothing(tags: Any) -> None:
    with pytest.raises((InvalidNameError, LimitError)):
        tick.start(tags=tags)
    assert Instance.objects.count() == 0


@pytest.mark.django_db
@pytest.mark.parametrize("reason", ["x" * 2001, "a\0b", "\ud800"])
def test_a_reason_that_cannot_be_stored_starts_nothing(reason: str) -> None:
    with pytest.raises((LimitError, InvalidValueError)):
        tick.start(by="ada", reason=reason)
    assert (Instance.objects.count(), Audit.objects.count()) == (0, 0)


@pytest.mark.django_db
def test_get_finds_by_id_within_its_workflow() -> None:
    instance = tick.start(id="one")
    assert tick.get("one") == instance
    with pytest.raises(InstanceNotFoundError, match='"nap" has no instance "one"'):
        nap.get("one")


@pytest.mark.django_db
def test_get_reads_every_column_as_the_orm_does() -> None:
    started = process_order.start(ORDER, id="o-1", tags=["eu"], retention={"complete": timedelta(days=1)})
    Instance.objects.filter(key=started.key).update(
        status="errored",
        error={"type": "E", "n": [1e16, -0.0]},
        unreached=[3, 4],
        wake_at=None,
        finished_at=started.created_at,
    )
    found, expected = process_order.get("o-1"), Instance.objects.get(key=started.key)
    assert [(field.name, getattr(found, field.attname)) for field in Instance._meta.concrete_fields] == [
        (field.name, getattr(expected, field.attname)) for field in Instance._meta.concrete_fields
    ]
    assert not found._state.adding
    assert found._state.db == expected._state.db


@pytest.mark.django_db
def test_get_or_start_returns_what_exists_as_it_is() -> None:
    first, created = nap.get_or_start("one", {"seconds": 1})
    second, created_again = nap.get_or_start("one", {"seconds": 2})
    assert (created, created_again) == (True, False)
    assert second == first
    assert second.params == {"seconds": 1}


@pytest.mark.django_db
def test_many_starts_report_what_they_could_not_start() -> None:
    """CF-77: an id in use is skipped; so is each bad item, and the rest start."""
    nap.start({"seconds": 0}, id="used")
    result = nap.start_many(
        [
            {"id": "b", "params": {"seconds": 1}},
            {"id": "used", "params": {"seconds": 1}},
            {"id": "a b", "params": {"seconds": 1}},
            {"id": "c", "params": {"seconds": "long"}},  # type: ignore[dict-item]
            {"params": {"seconds": 2}},
            {"id": "b", "params": {"seconds": 3}},
            {"id": "d", "params": {"seconds": 4}, "tag": "x"},  # type: ignore[typeddict-unknown-key]
            "e",  # type: ignore[list-item]
            {"id": "a", "params": {"seconds": 5}, "tags": ["late"]},
        ]
    )
    assert [
        (row.id if row.params != {"seconds": 2} else "", row.params["seconds"]) for row in result.created
    ] == [
        ("b", 1),
        ("", 2),
        ("a", 5),
    ]
    assert [(error["index"], error["id"], error["code"]) for error in result.errors] == [
        (1, "used", "id_in_use"),
        (2, "a b", "invalid_name"),
        (3, "c", "invalid_params"),
        (5, "b", "id_in_use"),
        (6, "d", "invalid_value"),
        (7, None, "invalid_value"),
    ]
    assert nap.get("a").tags == ["late"]
    assert Instance.objects.count() == 4


@pytest.mark.django_db
def test_many_starts_are_one_statement(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        result = nap.start_many([{"params": {"seconds": n}} for n in range(500)])
    assert [row.params for row in result.created] == [{"seconds": n} for n in range(500)]


@pytest.mark.django_db
def test_too_many_starts_at_once_are_refused() -> None:
    def endless() -> Any:
        while True:
            yield {"params": {"seconds": 1}}

    with pytest.raises(LimitError, match="10,001"):
        nap.start_many(endless())
    assert Instance.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_batches_with_ids_in_common_do_not_deadlock() -> None:
    ids = [f"i{n}" for n in range(200)]

    def start(number: int) -> int:
        order = ids if number % 2 else ids[::-1]
        return len(tick.start_many([{"id": one} for one in order]).created)

    results = together(8, start)
    assert [result for result in results if isinstance(result, Exception)] == []
    assert sum(result for result in results if isinstance(result, int)) == 200


@pytest.mark.django_db(transaction=True)
def test_the_async_twins_do_the_same() -> None:
    async def work() -> tuple[Instance, Instance, tuple[Instance, bool], int]:
        first = await tick.astart(id="one")
        many = await tick.astart_many([{"id": "two"}])
        return first, await tick.aget("one"), await tick.aget_or_start("two"), len(many.created)

    first, found, (second, created), count = async_to_sync(work)()
    assert first == found
    assert (second.id, created, count) == ("two", False, 1)
