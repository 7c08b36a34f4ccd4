"""A workflow to deploy again with other code, and dry runs that must not leave a trace."""

from __future__ import annotations

import io
import json
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from engine import WorkflowStep, workflow, workflows
from engine.models import Instance
from tests.stories import running_shift, wait_for

ran: list[str] = []


def note(what: str) -> str:
    ran.append(what)
    return what


def deploy(handler: Any, name: str = "sell", **options: Any) -> Any:
    """Declare the workflow again, as a deployment of other code does."""
    workflows._workflows.pop(name, None)
    return workflow(name=name, **options)(handler)


async def sell(step: WorkflowStep) -> None:
    await step.do("charge", note, "charge")
    await step.do("print-invoice", note, "print-invoice")
    await step.wait_for_event("packed")
    await step.do("ship", note, "ship")


def parked(handler: Any = sell, params: Any = None, **options: Any) -> Instance:
    """Start an instance, and let it reach its wait."""
    instance: Instance = deploy(handler, **options).start(params)
    with running_shift():
        wait_for(instance, "waiting")
    ran.clear()
    return instance


def replay(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the JSON of a dry run, which leaves every row as it is and runs no body."""
    out, code, before = io.StringIO(), 0, rows()
    try:
        call_command("workflow", "replay", *(arguments or ("--all-open",)), "--json", stdout=out)
    except CommandError as error:
        code = error.returncode
    assert (rows(), ran) == (before, [])
    found: dict[str, Any] = json.loads(out.getvalue())
    return code, found


def only(*arguments: str) -> dict[str, Any]:
    """Return the only finding of a dry run that finds one."""
    code, found = replay(*arguments)
    assert (code, len(found["findings"])) == (1, 1)
    [one] = found["findings"]
    assert found[one["verdict"]] == 1
    return dict(one)


def rows() -> dict[str, list[str]]:
    """Return everything that the database has, with what each row's last writer was."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename")
        tables = [name for (name,) in cursor.fetchall()]
        found = {}
        for table in tables:
            cursor.execute(f'SELECT xmin || t::text FROM "{table}" t ORDER BY 1')
            found[table] = [row for (row,) in cursor.fetchall()]
    return found
