"""A history as a file: what an instance was given, what it recorded, and how it ended."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from django.db import connection

from engine.models import Instance, Log
from engine.replay.host import Claimed
from engine.replay.records.history import History, StepRecord
from engine.replay.records.outcomes import micros
from engine.worker.database import history_sql, rows

HERE = Path(__file__).parent
JSON_TEXTS = {"options", "output", "error"}
# The fields of a StepRecord that are columns; those after them are made anew by whoever reads it.
COLUMNS = takewhile(lambda field: field.name != "is_recorded", dataclasses.fields(StepRecord))
DEFAULTS = {field.name: field.default for field in COLUMNS}


@dataclass(frozen=True, slots=True)
class Golden:
    """One story of one workflow. `steps` are rows as the worker reads them, those with a default left out."""

    story: str
    workflow: str
    id: str
    params: Any
    started_us: int
    log_lines: int
    status: str
    output: Any
    error: dict[str, Any] | None
    unreached: list[int]
    steps: list[dict[str, Any]]

    @classmethod
    def load(cls, story: str) -> Golden:
        return cls(**json.loads((HERE / f"{story}.json").read_text()))

    @classmethod
    def of(cls, story: str, instance: Instance) -> Golden:
        """Read it from the database, as a worker would."""
        assert instance.started_at is not None
        return cls(
            story=story,
            workflow=instance.workflow,
            id=instance.id,
            params=instance.params,
            started_us=micros(instance.started_at),
            log_lines=Log.objects.filter(instance=instance, position__gt=0).count(),
            status=instance.status,
            output=instance.output,
            error=without_traceback(instance.error),
            unreached=instance.unreached,
            steps=[_plain(record) for record in _records(instance)],
        )

    def save(self) -> None:
        text = json.dumps(dataclasses.asdict(self), indent=1, ensure_ascii=False)
        (HERE / f"{self.story}.json").write_text(text + "\n")

    def claimed(self) -> Claimed:
        """Return the instance as a worker claims it: never due, and with no deadline that could pass."""
        params = json.dumps(self.params, ensure_ascii=False)
        facts = Claimed(1, self.workflow, self.id, 1, 1, 0, params, self.started_us, None, quarantined=False)
        return dataclasses.replace(facts, log_lines=self.log_lines)

    def history(self) -> History:
        found = History(log_lines=self.log_lines)
        for step in self.steps:
            found.add_step(_record(step))
        return found


def without_traceback(error: dict[str, Any] | None) -> dict[str, Any] | None:
    """Leave out where in which files an error was raised: it may be raised elsewhere tomorrow."""
    return error and {name: value for name, value in error.items() if name != "traceback"}


def _records(instance: Instance) -> list[StepRecord]:
    with connection.cursor() as cursor:
        which = {"keys": [instance.key], "generations": [instance.generation]}
        cursor.execute(history_sql.HISTORY_STEPS, which)
        return [rows.step(row)[1] for row in cursor.fetchall()]


def _plain(record: StepRecord) -> dict[str, Any]:
    """Write down what is not as it would be anyway. Of values that may be null, one that is there stays."""
    plain = {name: getattr(record, name) for name, default in DEFAULTS.items()}
    plain = {name: value for name, value in plain.items() if value != DEFAULTS[name]}
    texts = {name: json.loads(plain[name]) for name in JSON_TEXTS & plain.keys()}
    if "error" in texts:
        texts["error"] = without_traceback(texts["error"])
    return plain | texts


def _record(plain: dict[str, Any]) -> StepRecord:
    texts = {name: json.dumps(plain[name], ensure_ascii=False) for name in JSON_TEXTS & plain.keys()}
    types = tuple(plain.get("event_types", ()))
    return StepRecord(**{**plain, **texts, "event_types": types})
