"""A project with Celery: its tasks start workflows, and steps of workflows queue its tasks."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.embedded import EmbeddedServer
from tests.projects.project import PATIENCE, Project, new_project

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

CLEAN = "System check identified no issues (0 silenced).\n"

# A broker in files: the same as any other for who uses it.
CELERY = """
from celery import Celery

app = Celery("shop", broker="filesystem://", backend="file://{place}")
app.conf.broker_transport_options = {{
    "data_folder_in": "{place}", "data_folder_out": "{place}", "control_folder": "{place}",
}}
app.autodiscover_tasks(["orders"])
"""
TASKS = """
import sys
from pathlib import Path

from celery import shared_task

NOTES = Path(__file__).parent.parent / "notes.txt"


@shared_task
def order(number):
    from orders.workflows import ship

    return ship.start(number, id=f"order-{number}").id


@shared_task
def mail(number):
    with NOTES.open("a") as file:
        file.write(f"mail-{number} by {'celery' if 'celery' in sys.argv[0] else sys.argv[1]}\\n")
"""
WORKFLOWS = """
from engine import WorkflowStep, workflow
from orders.tasks import mail


def queue_mail(number: int) -> str:
    return mail.delay(number).id


@workflow
async def ship(step: WorkflowStep, number: int) -> int:
    await step.do("mail", queue_mail, number)
    return number
"""
ORDER = "from orders.tasks import order; [order.delay(number) for number in range(3)]"
STATUS = "SELECT id, status FROM engine_instance ORDER BY id"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install Celery beside the environment of the tests, which need it nowhere else."""
    target = tmp_path_factory.mktemp("celery")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), "celery>=5.4,<6"],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        pytest.skip(f"Celery cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
    return target


@pytest.fixture
def project(tmp_path: Path, postgresql: EmbeddedServer, packages: Path) -> Iterator[Project]:
    with new_project(tmp_path, postgresql) as project:
        # After the packages of the tests' environment, some of which Celery needs, too.
        project.environment["PYTHONPATH"] += f":{packages}"
        project.environment["DJANGO_SETTINGS_MODULE"] = "shop.settings"
        place = project.directory / "queue"
        place.mkdir()
        project.write("shop/celery.py", CELERY.format(place=place))
        project.append("shop/__init__.py", "from shop.celery import app as celery_app\n")
        project.app("orders", tasks=TASKS, workflows=WORKFLOWS)
        yield project.follow_readme()


def test_tasks_of_celery_and_workflows_start_each_other(project: Project) -> None:
    project.manage("migrate", "-v", "0")
    assert project.manage("check") == CLEAN
    assert project.manage("check", "--database", "default") == CLEAN
    project.shell(ORDER)
    worker = ("celery", "-A", "shop", "worker", "--pool", "solo", "--without-gossip", "--without-mingle")
    with project.running("-m", *worker), project.working():
        project.wait_for(STATUS, [(f"order-{number}", "complete") for number in range(3)])
        deadline = time.monotonic() + PATIENCE
        while noted(project) != [f"mail-{number} by celery" for number in range(3)]:
            assert time.monotonic() < deadline, f"{noted(project)}\n{project.logs()}"
            time.sleep(0.1)


def noted(project: Project) -> list[str]:
    file = project.directory / "notes.txt"
    return sorted(file.read_text().splitlines()) if file.exists() else []
