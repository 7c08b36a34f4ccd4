"""Times and durations have their date and zone before, and without, the script that keeps them current."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from studio.templatetags.studio_tags import at, lasted
from tests.studio import factories

NOON = datetime(2026, 11, 27, 12, 0, 0, 250_000, tzinfo=UTC)


def test_a_time_has_its_date_and_utc() -> None:
    assert 'title="2026-11-27 12:00:00 UTC"' in at(NOON, "ago")


def test_a_duration_has_both_its_ends() -> None:
    html = lasted(NOON, NOON + timedelta(seconds=1.5))
    assert 'title="2026-11-27 12:00:00.250 to 2026-11-27 12:00:01.750 UTC"' in html
    assert 'datetime="PT1.500S"' in html
    assert html.endswith(">1.5 s</time>")


@pytest.mark.django_db
def test_no_time_of_a_page_is_without_a_title(operator: Client) -> None:
    instance = factories.instance("errored")
    step = factories.step(instance, "charge_card", "errored", error=factories.FAILURE)
    factories.attempt(step, "errored", error=factories.FAILURE)
    for where in (instance.get_absolute_url(), "/instances/", "/", "/audit/", "/workers/", "/errors/"):
        page = operator.get(where).content.decode()
        times = re.findall(r"<time [^>]*>", page)
        assert [one for one in times if 'title="' not in one] == [], where
