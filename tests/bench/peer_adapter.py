"""Reprise as one peer of the side-by-side benchmark: the stock cluster with the settings that people get.

Loaded by the harness, whose `common` and `pg` it uses and nothing else. A worker is one `manage.py workers`; work is
started and events are sent through the public calls, from the driver's process.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import common
import pg

PROJECT = Path(__file__).resolve().parents[2]
DATABASE = "bench_reprise"
MOST_AT_ONCE = 10_000  # that `start_many` takes


class Peer(common.Adapter):
    about = "Reprise (PostgreSQL): one cluster with its default settings, async bodies"
    steps = "step.do"

    def versions(self) -> dict[str, str]:
        return {name: version(name) for name in ("django", "django-q2", "psycopg")}

    def worker_env(self) -> dict[str, str]:
        return _environment()

    def setup(self) -> None:
        pg.fresh_db(DATABASE)
        os.environ.update(_environment())
        _django()
        from django.core.management import call_command
        from django.db import connection

        connection.close()
        call_command("migrate", verbosity=0)

    def teardown(self) -> None:
        from django.db import connection

        connection.close()
        pg.drop_db(DATABASE)

    def worker_main(self, mode: str) -> None:
        _django()
        from django.core.management import call_command

        sys.argv = ["manage.py", "workers"]
        print("READY", flush=True)
        call_command("workers")

    # Work

    def start(self, flow: str, inst: str, **a: Any) -> None:
        _workflow(flow).start({"inst": inst, **a}, id=inst)

    def start_many(self, flow: str, insts: list[str], **a: Any) -> None:
        for first in range(0, len(insts), MOST_AT_ONCE):
            some = insts[first : first + MOST_AT_ONCE]
            started = _workflow(flow).start_many([{"params": {"inst": one, **a}, "id": one} for one in some])
            assert not started.errors, started.errors[:3]

    def send_event(self, inst: str) -> None:
        _workflow("event").get(inst).send_event("go", {"go": 1})

    def done(self, prefix: str) -> int:
        from engine.models import Instance

        return int(Instance.objects.filter(id__startswith=prefix, status="complete").count())


def _environment() -> dict[str, str]:
    return {
        "DATABASE_URL": pg.url(DATABASE),
        "REPRISE_HOME": str(Path(common.STATE) / "reprise-home"),
        "REPRISE_APPS": "tests.bench",
        "REPRISE_ROLE": "cluster",
        "DJANGO_SETTINGS_MODULE": "studio.settings",
        "PYTHONPATH": str(PROJECT),
    }


def _django() -> None:
    import django
    from django.apps import apps

    if not apps.ready:
        sys.path.insert(0, str(PROJECT))
        django.setup()
        from tests.bench.workflows import probe

        probe.update(mark=common.mark, result=common.result)


def _workflow(flow: str) -> Any:
    from engine import workflows

    return workflows[flow]
