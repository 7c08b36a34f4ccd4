"""A start that is copied as a command line, run as it is."""

from __future__ import annotations

import html
import json
import re
import shlex

import pytest
from django.core.management import call_command
from django.test import Client

from engine import WorkflowStep, workflow
from engine.models import Instance

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("declared")]


@pytest.fixture
def declared(own_registry: None) -> None:
    @workflow("count")
    async def count(step: WorkflowStep, params: float) -> None: ...


def command(client: Client, text: str, **given: str) -> str:
    page = client.post("/_f/workflows/count/check/", {"params": text, **given}).content.decode()
    (found,) = re.findall(r'data-copy="([^"]*)"\s+aria-label="Copy as Command line"', page)
    return html.unescape(found)


@pytest.mark.parametrize("text", ["7", "-5", "-5e-3"])
@pytest.mark.parametrize("tags", ["", "-x, --tag, it's, a=b"])
def test_it_starts_the_same(operator: Client, text: str, tags: str) -> None:
    given = {"id": "count-7", "tags": tags} if tags else {}
    words = shlex.split(command(operator, text, **given))
    assert words[:2] == ["python", "manage.py"]
    call_command(*words[2:])
    (instance,) = Instance.objects.all()
    assert instance.params == json.loads(text)
    assert instance.tags == [tag.strip() for tag in tags.split(",") if tag]
    assert (instance.id == "count-7") == bool(tags)
