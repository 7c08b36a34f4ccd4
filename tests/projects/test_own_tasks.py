"""A project with tasks and schedules of its own in django-q2, whose cluster knows nothing of ours."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from studio.embedded import EmbeddedServer
from tests.projects.project import PATIENCE, Project, new_project, readme_lines

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

CLEAN = "System check identified no issues (0 silenced).\n"

OPTIONS = (
    '"name": "shop", "workers": 2, "timeout": 60, "retry": 120, "sync": False, "max_rss": 1, "recycle": 3'
)
ORM = f'{{{OPTIONS}, "orm": "default", "bulk": 5}}'
FOLDER = f'{{{OPTIONS}, "broker_class": "orders.broker.Folder", "scheduler": True}}'

# django-q looks at schedules when its guard has slept for 30 s in all: with one sleep of 30 s it looks at its start. It
# then does not replace a worker sooner, so its workers have to stay.
IN_QCLUSTER = """
import sys
if sys.argv[1:2] == ["qcluster"]:
    Q_CLUSTER |= {"guard_cycle": 30, "max_rss": None, "recycle": 500}
"""

# Every note says which program ran it; nothing but a task of the shop has a tenant.
TASKS = """
import sys
from pathlib import Path

NOTES = Path(__file__).parent.parent / "notes.txt"


def note(text, tenant):
    with NOTES.open("a") as file:
        file.write(f"{text} {sys.argv[1]}\\n")


def require_tenant(task, **_):
    task["kwargs"]["tenant"]
"""
MODELS = """
from django_q.signals import pre_execute

from orders.tasks import require_tenant

pre_execute.connect(require_tenant)
"""
WORKFLOWS = """
from django_q.tasks import async_task

from engine import WorkflowStep, workflow
from orders.tasks import note


def queue(text: str) -> None:
    async_task("orders.tasks.note", text, tenant="acme")


@workflow
async def bill(step: WorkflowStep, number: int) -> str:
    await step.do("note", note, f"step-{number}", "acme")
    await step.do("queue", queue, f"queued-{number}")
    return "billed"
"""
# A broker with nothing of the ORM: a file for each task. It records who uses it, and how.
BROKER = """
import sys
import uuid
from pathlib import Path

from django_q.brokers import Broker

PLACE = Path(__file__).parent.parent / "queue"


class Folder(Broker):
    def __init__(self, list_key=None):
        super().__init__(list_key)
        PLACE.mkdir(exist_ok=True)

    def enqueue(self, task):
        self.record("enqueue")
        name = uuid.uuid4().hex
        (PLACE / f"{name}.new").write_text(task)
        (PLACE / f"{name}.new").rename(PLACE / f"{name}.task")
        return name

    def dequeue(self):
        self.record("dequeue")
        for found in PLACE.glob("*.task"):
            taken = found.rename(found.with_suffix(".taken"))
            return [(taken.stem, taken.read_text())]
        import time

        time.sleep(0.2)

    def acknowledge(self, name):
        (PLACE / f"{name}.taken").unlink()

    def ping(self):
        return True

    def record(self, what):
        with (PLACE / "used.txt").open("a") as file:
            file.write(f"{what} {sys.argv[1]}\\n")
"""
QUEUE = """
from django.utils import timezone
from django_q.models import Schedule
from django_q.tasks import async_task

from orders.workflows import bill

for number in range(3):
    async_task("orders.tasks.note", f"task-{number}", tenant="acme")
    bill.start(number, id=f"bill-{number}")
Schedule.objects.create(
    name="hourly", func="orders.tasks.note", args="'scheduled'", kwargs="tenant='acme'", schedule_type="H",
    next_run=timezone.now(),
)
Schedule.objects.create(
    name="named", func="orders.tasks.note", args="'named'", kwargs="tenant='acme'", schedule_type="O",
    cluster="shop", next_run=timezone.now(),
)
"""
PARTS = """
import django_q.cluster as parts
print({part.__module__.split(".")[0] for part in (parts.Cluster, parts.Sentinel, parts.Queue, parts.get_broker)})
"""
STATUS = "SELECT id, status FROM engine_instance ORDER BY id"
BILLED = [(f"bill-{number}", "complete") for number in range(3)]

OF_TASKS = [*(f"task-{number}" for number in range(3)), *(f"queued-{number}" for number in range(3))]


@pytest.fixture
def project(tmp_path: Path, postgresql: EmbeddedServer) -> Iterator[Project]:
    with new_project(tmp_path, postgresql) as project:
        yield project


def shop(project: Project, options: str) -> Project:
    """Give the project tasks of its own; then put Reprise beside them, as the README says."""
    project.append(
        "shop/settings.py", f'INSTALLED_APPS += ["django_q"]\nQ_CLUSTER = {options}\n{IN_QCLUSTER}'
    )
    project.app("orders", tasks=TASKS, models=MODELS, workflows=WORKFLOWS, broker=BROKER)
    settings, urls = readme_lines()
    assert ', "django_q"]' in settings
    project.append("shop/settings.py", settings.replace(', "django_q"]', "]"))
    project.append("shop/urls.py", urls)
    project.manage("migrate", "-v", "0")
    return project


def notes(project: Project) -> Counter[str]:
    file = project.directory / "notes.txt"
    return Counter(file.read_text().splitlines() if file.exists() else [])


@pytest.mark.long
@pytest.mark.parametrize("options", [ORM, FOLDER], ids=["orm", "broker of its own"])
def test_each_cluster_runs_its_own_and_nothing_of_the_other(project: Project, options: str) -> None:
    shop(project, options)
    assert project.manage("check") == CLEAN
    assert project.manage("check", "--database", "default") == CLEAN
    assert project.shell(PARTS).strip() == "{'django_q'}"
    project.shell(QUEUE)
    begun = project.query("SELECT next_run FROM django_q_schedule WHERE name = 'hourly'")[0][0]
    assert isinstance(begun, datetime)

    with project.running("manage.py", "workers", "--workers", "2", "--slots", "5"):
        project.wait_for(STATUS, BILLED)
        # Our broker looks for tasks at least every five seconds, where it serves any.
        time.sleep(6)
        assert notes(project) == Counter(f"step-{number} workers" for number in range(3))
        assert queued(project) == len(OF_TASKS)
        assert "2 workers, 5 slots in each" in project.logs()

        expected = Counter(f"{text} qcluster" for text in [*OF_TASKS, "scheduled", "named"])
        expected += Counter(f"step-{number} workers" for number in range(3))
        with project.running("manage.py", "qcluster"):
            deadline = time.monotonic() + 2 * PATIENCE
            while notes(project).keys() != expected.keys():
                assert time.monotonic() < deadline, f"{notes(project)}\n{project.logs()}"
                time.sleep(0.1)
            while queued(project):
                assert time.monotonic() < deadline, project.logs()
                time.sleep(0.1)
    assert notes(project) == expected
    after = project.query("SELECT next_run FROM django_q_schedule")
    assert after == [(begun + timedelta(hours=1),)]
    used = project.directory / "queue" / "used.txt"
    if used.exists():
        assert {line for line in used.read_text().splitlines() if line.endswith(" workers")} == {
            "enqueue workers"
        }


def queued(project: Project) -> int:
    rows = project.query("SELECT count(*) FROM django_q_ormq")[0][0]
    assert isinstance(rows, int)
    return rows + len([*(project.directory / "queue").glob("*.ta*")])


@pytest.mark.long
def test_workers_also_run_the_tasks_of_a_project_without_a_cluster_of_its_own(project: Project) -> None:
    project.app("orders", tasks=TASKS, workflows=WORKFLOWS)
    project.follow_readme()
    assert project.manage("migrate", "-v", "0") == ""
    assert project.manage("check") == CLEAN
    project.shell(QUEUE)
    expected = Counter(
        f"{text} workers" for text in [*OF_TASKS, *(f"step-{number}" for number in range(3)), "scheduled"]
    )
    with project.working():
        project.wait_for(STATUS, BILLED)
        deadline = time.monotonic() + 2 * PATIENCE
        while notes(project).keys() != expected.keys() or queued(project):
            assert time.monotonic() < deadline, f"{notes(project)}\n{project.logs()}"
            time.sleep(0.1)
    assert notes(project) == expected


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (("--slots", "0"), "--slots is '0': it takes a whole number from 1 to 10000."),
        (("--workers", "many"), "--workers is 'many': it takes a whole number from 1 to 64."),
    ],
)
def test_an_option_that_cannot_be_used_is_refused(
    project: Project, arguments: tuple[str, ...], refusal: str
) -> None:
    project.follow_readme()
    assert project.manage("workers", *arguments, code=1) == f"CommandError: {refusal}\n"
