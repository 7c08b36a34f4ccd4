"""The index of search paths: written with every start and every end, and deleted with the instance."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection, transaction
from pydantic import BaseModel, SecretStr

from engine import WorkflowStep, workflow
from engine.models import Instance, ScheduleRow, SearchValue
from engine.steer import retention
from engine.steer.clock import database_time
from engine.steer.indexing import paths
from engine.worker import schedules
from tests.integration.orders import declare, found
from tests.stories import run_to_end


class Login(BaseModel):
    user: str
    password: SecretStr | None = None


pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_registry")]


def test_each_kind_of_value_is_found_by_its_text_and_numbers_by_their_value() -> None:
    names = [
        "text",
        "int",
        "float",
        "small",
        "true",
        "null",
        "object",
        "array",
        "missing",
        "items.1.sku",
        "long",
    ]
    order = declare(*names)
    paths.register()
    instance = order.start(
        {
            "text": "Größe \u0001 🎈 \\u0000",
            "int": 2**63 - 1,
            "float": 1e16,
            "small": -5e-324,
            "true": True,
            "null": None,
            "object": {},
            "array": [1],
            "items": [{"sku": "a"}, {"sku": "b"}],
            "long": "x" * 1000,
        }
    )
    assert found(instance) == {
        "params.text": ("Größe \u0001 🎈 \\u0000", None),
        "params.int": ("9223372036854775807", Decimal(2**63 - 1)),
        "params.float": ("1e+16", Decimal(10**16)),
        "params.small": ("-5e-324", Decimal("-5e-324")),
        "params.true": ("true", None),
        "params.null": ("null", None),
        "params.object": (None, None),
        "params.array": (None, None),
        "params.items.1.sku": ("b", None),
        "params.long": ("x" * 256, None),
    }


def test_the_whole_document_and_what_is_in_a_key_of_its_own_name_are_paths_too() -> None:
    @workflow("scalar", search=["params", "output", "params.output", "outputs"])
    async def scalar(step: WorkflowStep, params: int) -> str:
        return f"n{params}"

    paths.register()
    assert found(run_to_end(scalar.start(7))) == {"params": ("7", Decimal(7)), "output": ("n7", None)}


def test_of_a_secret_only_its_presence_is_indexed() -> None:
    @workflow("login", search=["user", "password"])
    async def login(step: WorkflowStep, params: Login) -> None: ...

    paths.register()
    with_secret, without = login.start({"user": "a", "password": "p"}), login.start({"user": "b"})
    assert found(with_secret) == {"params.user": ("a", None), "params.password": (None, None)}
    assert found(without) == {"params.user": ("b", None), "params.password": ("null", None)}


def test_start_many_writes_all_values_and_a_rolled_back_start_none() -> None:
    order = declare("customer")
    paths.register()
    started = order.start_many([{"params": {"customer": f"c{number}"}} for number in range(3)]).created
    assert [found(one) for one in started] == [{"params.customer": (f"c{n}", None)} for n in range(3)]
    with transaction.atomic():
        order.start({"customer": "never"})
        transaction.set_rollback(True)
    assert SearchValue.objects.count() == 3


def test_a_child_and_what_a_schedule_starts_are_indexed() -> None:
    @workflow("part", search=["sku", "output"])
    async def part(step: WorkflowStep, params: dict[str, str]) -> str:
        return params["sku"].upper()

    @workflow("whole", search=["output"], schedules=["0 0 29 2 *"])
    async def whole(step: WorkflowStep) -> str:
        return await step.run_workflow("part", part, {"sku": "a"})

    paths.register()
    schedules.sync()
    ScheduleRow.objects.update(next_at=database_time())
    assert schedules.fire_due() == 1
    assert found(run_to_end(Instance.objects.get(workflow="whole"))) == {"output": ("A", None)}
    assert found(Instance.objects.get(workflow="part")) == {"params.sku": ("a", None), "output": ("A", None)}


def test_an_output_is_indexed_with_the_end_and_removed_by_a_restart() -> None:
    order = declare("customer", "output.total")
    paths.register()
    instance = run_to_end(order.start({"customer": "c", "returns": {"total": 5}}))
    both = {"params.customer": ("c", None), "output.total": ("5", Decimal(5))}
    assert found(instance) == both
    instance.restart()
    assert found(instance) == {"params.customer": ("c", None)}
    assert found(run_to_end(instance)) == both


def test_an_instance_that_fails_has_no_output() -> None:
    @workflow("failing", search=["output"])
    async def failing(step: WorkflowStep) -> str:
        raise ValueError("no")

    paths.register()
    assert found(run_to_end(failing.start())) == {}


def test_a_deletion_and_retention_delete_the_values() -> None:
    order = declare("customer", "output")
    paths.register()
    one, two = (run_to_end(order.start({"customer": "c", "returns": 1})) for _ in range(2))
    assert SearchValue.objects.count() == 4
    one.delete()
    assert [*SearchValue.objects.values_list("instance_id", flat=True)] == [two.key] * 2
    assert retention.sweep(now=database_time() + timedelta(days=365)) == 1
    assert not SearchValue.objects.exists()


def test_a_process_of_an_earlier_version_that_deletes_an_instance_leaves_no_values() -> None:
    order = declare("customer")
    paths.register()
    instance = order.start({"customer": "c"})
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM engine_instance WHERE key = %s", [instance.key])
    assert not SearchValue.objects.exists()


def test_what_the_engine_never_writes_fails_no_start_and_no_end() -> None:
    declare("text", "number", "far", "output")
    paths.register()
    strange = {
        "nul": r'{"text": "a", "number": 1, "other": "\u0000"}',
        "half": r'{"text": "\ud800"}',
        "huge": '{"text": "1", "number": 1e999999, "far": ' + "9" * 5000 + "}",
        "deep": '{"far": ' + "[" * 1000 + "]" * 1000 + "}",
        "many": '{"text": 1, "text": 2}',
    }
    with connection.cursor() as cursor:
        for name, params in strange.items():
            cursor.execute(
                "INSERT INTO engine_instance (workflow, id, status, params, wake_at)"
                " VALUES ('order', %s, 'queued', %s::json, clock_timestamp())",
                [name, params],
            )
            cursor.execute(
                "UPDATE engine_instance SET status = 'complete', wake_at = NULL, output = params,"
                " finished_at = clock_timestamp() WHERE id = %s",
                [name],
            )
    rows = {name: found(Instance.objects.defer("params", "output").get(id=name)) for name in strange}
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM engine_instance")
        cursor.execute("DELETE FROM engine_searchvalue")
    assert (rows["nul"], rows["half"]) == ({}, {})
    assert rows["huge"] == {
        "params.text": ("1", None),
        "params.number": ("1e999999", None),
        "params.far": ("9" * 256, None),
        "output": (None, None),
    }
    assert rows["deep"] == {"params.far": (None, None), "output": (None, None)}
    assert rows["many"] == {"params.text": ("2", Decimal(2)), "output": (None, None)}


def test_params_of_the_largest_size_are_indexed() -> None:
    order = declare(*(f"k{number}" for number in range(20)))
    paths.register()
    instance = order.start({f"k{number}": "x\n" * 17_000 for number in range(20)})
    assert len(found(instance)) == 20
