"""Scripts and styles that pages load together are one file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from studio.frame.joined import FILES

STATIC = Path(settings.BASE_DIR) / "static"
LINK = re.compile(r'(?:src|href)="(/_f/joined/[^"]+)"')


def linked(client: Client) -> list[str]:
    return LINK.findall(client.get("/sign-in/").content.decode())


@pytest.mark.django_db
def test_a_page_loads_them_and_the_browser_keeps_them_under_an_address_of_their_content(
    client: Client,
) -> None:
    addresses = linked(client)
    assert [address.partition("?")[0] for address in addresses] == [
        "/_f/joined/frame.css",
        "/_f/joined/frame.js",
    ]
    for address, kind in zip(addresses, ("text/css", "text/javascript"), strict=True):
        answer = client.get(address, headers={"Accept-Encoding": "gzip"})
        assert answer.headers["Content-Type"] == f"{kind}; charset=utf-8"
        assert answer.headers["Cache-Control"] == "private, max-age=31536000, immutable"
        assert answer.headers["Content-Encoding"] == "gzip"
        assert answer.headers["Vary"] == "Accept-Encoding"  # also after a sign-in


@pytest.mark.django_db
@pytest.mark.parametrize("query", ["", "?0123456789ab"])
def test_what_another_version_asks_for_is_answered_and_not_kept(client: Client, query: str) -> None:
    answer = client.get(f"/_f/joined/frame.js{query}")
    assert answer.headers["Cache-Control"] == "no-store, private"
    assert answer.content == client.get(linked(client)[1]).content


@pytest.mark.django_db
@pytest.mark.parametrize("name", FILES)
def test_it_has_the_code_of_its_files_in_their_order_without_comments(client: Client, name: str) -> None:
    answer = client.get(f"/_f/joined/{name}").content.decode()
    assert code_of(answer) == [line for file in FILES[name] for line in code_of((STATIC / file).read_text())]
    assert not re.search(r"^\s*(//|/\*)", answer, re.MULTILINE)


def code_of(text: str) -> list[str]:
    """Return the lines that end as code does."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("//"))
    return [line for line in lines if line.endswith(("{", "}", ";", ","))]


@pytest.mark.django_db
def test_no_other_file_is_answered(client: Client) -> None:
    assert client.get("/_f/joined/keys.js").status_code == 404
