"""What a browser loads for the first page of a visit."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.db import connection
from django.test import Client

from engine.models import Attempt, Instance, Step
from tests.modules import Module
from tests.studio import factories
from tests.studio.routes import address, rules

pytestmark = pytest.mark.django_db

# Compressed; without fonts, and without what loads when the page is there: drafts, editors, the API's documentation.
MOST_BYTES = 60_000
LOADED = re.compile(r'<(?:script|link)\b[^>]*?\b(?:src|href)="/static/([^"]+)\.[0-9a-f]{12}(\.(?:js|css))"')
JOINED = re.compile(r'<(?:script|link)\b[^>]*?\b(?:src|href)="(/_f/joined/[^"]+)"')
LATER = "studio/vendor/swagger"
VERBS = ("reserve", "charge", "score", "ship", "notify", "audit", "settle", "invoice", "refund")
THINGS = ("order", "stock", "card", "risk", "parcel", "ledger", "courier", "voucher")
PART = """
    {thing} = await step.do("{verb}-{thing}", {verb}_{thing}, order.{other}, max_attempts={n})
    if {thing}.{other} > {n}:  # the {other} is {after}d before the {thing} goes on
        await step.do("{after}-{other}", {after}_{other}, {thing})
        log.info("{after} the {other} of %s", order.id)
        if {thing}.{verb}:
            return {thing}.{other}
    else:
        await step.sleep("wait-for-{other}-{n}", {n})
    order.{other} = {thing}
"""
HANDLER = "".join(
    PART.format(n=n, verb=verb, thing=thing, after=after, other=other)
    for n, verb, thing, after, other in zip(
        range(1, 31), cycle(VERBS), cycle(THINGS), cycle(VERBS[::-1]), cycle(THINGS[::-1]), strict=False
    )
)


def test_no_page_is_heavier(signed_in: Callable[..., Client]) -> None:
    instance = factories.instance(workflow="process-order", id="order-1")
    factories.job(instance)
    admin = signed_in("admin")
    weights = {}
    for name, rule in rules().items():
        if "GET" not in rule.methods:
            continue
        answer = admin.get(address(name, instance))
        if answer.streaming or not answer.headers.get("Content-Type", "").startswith("text/html"):
            continue
        weights[name] = weight_of(answer.content)
    assert len(weights) > 20
    assert {name: weight for name, weight in weights.items() if weight > MOST_BYTES} == {}


def test_an_instance_of_a_few_steps_is_not_heavier(admin: Client) -> None:
    instance = factories.instance("waiting", waiting_for="retry", wake_at=factories.ago(minutes=-2))
    for name in islice(VERBS, 6):
        factories.step(instance, name, output={"id": f"{name}-4711", "left": len(name)})
    charge = factories.step(instance, "charge", "waiting", wake_at=instance.wake_at)
    for _ in range(3):
        factories.attempt(charge, "errored")
    assert [tab for tab in ("", "activity", "compare") if weight(admin, instance, tab) > MOST_BYTES] == []


def test_an_instance_of_10000_steps_is_not_heavier(admin: Client) -> None:
    instance = factories.instance("running")
    first = factories.step(instance, VERBS[0], started_at=factories.ago(minutes=90))
    times = {at: f"{at} + n * interval '0.5 s'" for at in ("started_at", "finished_at")}
    copy(
        first,
        seq="n",
        delivery="n",
        name=f"(ARRAY{[*VERBS]})[n % {len(VERBS)} + 1]",
        count=f"n / {len(VERBS)} + 1",
        output="jsonb_build_object('id', n * 7919 % 99991, 'score', round(ln(n)::numeric, 4))",
        **times,
    )
    copy(Attempt.objects.get(), step_seq="n", **times)
    assert weight(admin, instance) < MOST_BYTES


def copy(row: Step | Attempt, **given: str) -> None:
    """Write the rows of the other 9,999 steps like the one of the first, in one statement."""
    names = [str(field.column) for field in row._meta.concrete_fields if not field.primary_key]
    shown = ", ".join(given.get(name, name) for name in names)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {row._meta.db_table} ({', '.join(names)}) "
            f"SELECT {shown} FROM {row._meta.db_table}, generate_series(2, 10000) AS n"
        )


@pytest.mark.usefixtures("own_registry")
def test_the_code_of_a_handler_of_300_lines_is_not_heavier(
    admin: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Module(tmp_path / "shop.py", monkeypatch).load(
        f"from engine import workflow\n@workflow\nasync def orders(step, order: dict):\n{HANDLER}"
    )
    instance = factories.instance("running")
    for name in re.findall(r'step\.do\("([^"]*)"', HANDLER)[:40]:
        factories.step(instance, name)
    assert weight(admin, instance, "code") < MOST_BYTES


@pytest.fixture
def admin(signed_in: Callable[..., Client]) -> Client:
    return signed_in("admin")


def weight(client: Client, instance: Instance, tab: str = "") -> int:
    return weight_of(client.get(f"{instance.get_absolute_url()}?tab={tab}").content)


def weight_of(page: bytes) -> int:
    """Return how many bytes a browser loads for a page, compressed."""
    files = {"".join(parts) for parts in LOADED.findall(page.decode())}
    assert "studio/vendor/codemirror.js" not in files
    read = [_read(one) for one in files if LATER not in one]
    read += [Client().get(where).content for where in JOINED.findall(page.decode())]
    return _weight(page) + sum(_weight(one) for one in read)


def _weight(content: bytes) -> int:
    return len(gzip.compress(content, 6))


def _read(file: str) -> bytes:
    path = finders.find(file)
    assert isinstance(path, str), file
    return Path(path).read_bytes()
