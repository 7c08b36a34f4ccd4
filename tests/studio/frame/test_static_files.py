"""Static files of the site that is nothing but the Studio: names with a hash, kept for long, sent compressed."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.templatetags.static import static
from django.test import Client

from studio.server import static_files

STYLE = "studio/frame/tokens.css"
EDITOR = "studio/vendor/codemirror.js"
YEAR = "max-age=315360000, public, immutable"

pytestmark = pytest.mark.django_db


def content(name: str) -> bytes:
    path = finders.find(name)
    assert isinstance(path, str)
    return Path(path).read_bytes()


def hashed(name: str) -> str:
    stem, _, ending = name.rpartition(".")
    return f"/static/{stem}.{hashlib.sha256(content(name)).hexdigest()[:12]}.{ending}"


def test_a_page_loads_files_by_their_hash_and_the_browser_keeps_them(client: Client) -> None:
    page = client.get("/sign-in/", follow=True).content.decode()
    files = re.findall(r'(?:src|href)="(/static/[^"]+\.(?:js|css))"', page)
    assert hashed(STYLE) in files
    assert static(STYLE) == hashed(STYLE)
    for file in files:
        answer = client.get(file)
        assert (answer.status_code, answer.headers["Cache-Control"]) == (200, YEAR), file
        assert answer.getvalue() == content(re.sub(r"\.[0-9a-f]{12}\.", ".", file.removeprefix("/static/")))


def test_a_file_is_also_there_under_its_plain_name_and_soon_asked_for_again(client: Client) -> None:
    answer = client.get(f"/static/{STYLE}")
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "max-age=60, public")
    assert answer.getvalue() == content(STYLE)


def test_a_page_from_before_an_update_gets_the_file_of_today_for_a_moment(client: Client) -> None:
    answer = client.get("/static/studio/vendor/codemirror.0123456789ab.js")
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "max-age=60, public")
    assert answer.getvalue() == content(EDITOR)
    for nothing in (
        "studio/vendor/none.0123456789ab.js",
        "studio/vendor/",
        "../studio/settings.0123456789ab.py",
    ):
        assert client.get(f"/static/{nothing}").status_code == 404


@pytest.mark.parametrize("name", [STYLE, EDITOR, "studio/icons/complete.svg"])
def test_texts_are_compressed_for_those_who_accept_it(client: Client, name: str) -> None:
    answer = client.get(static(name), headers={"Accept-Encoding": "br, gzip"})
    packed = answer.getvalue()
    assert (answer.headers["Content-Encoding"], answer.headers["Content-Length"]) == (
        "gzip",
        str(len(packed)),
    )
    assert (answer.headers["Vary"], answer.headers["Cache-Control"]) == ("Accept-Encoding", YEAR)
    assert gzip.decompress(packed) == content(name)
    plain = client.get(static(name))
    assert "Content-Encoding" not in plain.headers
    assert (plain.headers["Vary"], plain.getvalue()) == ("Accept-Encoding", content(name))


def test_what_has_not_changed_is_not_sent_again(client: Client) -> None:
    first = client.get(f"/static/{STYLE}", headers={"Accept-Encoding": "gzip"})
    first.getvalue()
    again = client.get(
        f"/static/{STYLE}", headers={"Accept-Encoding": "gzip", "If-None-Match": first.headers["ETag"]}
    )
    assert (again.status_code, again.getvalue()) == (304, b"")


def test_a_part_of_a_file_and_its_headers_alone_are_sent_as_they_are(client: Client) -> None:
    part = client.get(static(EDITOR), headers={"Accept-Encoding": "gzip", "Range": "bytes=2-5"})
    assert (part.status_code, part.getvalue()) == (206, content(EDITOR)[2:6])
    head = client.head(static(EDITOR), headers={"Accept-Encoding": "gzip"})
    assert (head.status_code, head.getvalue(), head.headers.get("Content-Encoding")) == (200, b"", None)


def test_fonts_are_kept_for_long_under_names_that_change_with_them(client: Client) -> None:
    """Styles name fonts without a hash: a changed font needs another name."""
    fonts = Path(settings.BASE_DIR, "static", static_files.FONTS)
    versions = {
        "inter-latin-wght-normal.woff2": "3100e775e8616cd2611beecfa23a4263d7037586789b43f035236a2e6fbd4c62",
        "jetbrains-mono-latin-wght-normal.woff2": "18be452724bfdc236c074ca94a249a7f41a86752c7d04ab258ce9ed5651f6a7e",
    }
    assert {font.name: hashlib.sha256(font.read_bytes()).hexdigest() for font in fonts.iterdir()} == versions
    for font in versions:
        answer = client.get(static(f"{static_files.FONTS}{font}"), headers={"Accept-Encoding": "gzip"})
        assert (answer.headers["Cache-Control"], answer.headers.get("Content-Encoding")) == (YEAR, None)
        assert len(answer.getvalue()) > 10_000


def test_another_content_gives_another_name(tmp_path: Path, settings) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "own").mkdir()
    settings.STATICFILES_DIRS = [tmp_path]
    finders.get_finder.cache_clear()
    names = set()
    try:
        for text in ("a", "b", "a"):
            (tmp_path / "own/x.css").write_text(text)
            static_files.hashed_name.cache_clear()
            names.add(static("own/x.css"))
        assert len(names) == 2
        assert static("own/none.css") == "/static/own/none.css"
        settings.DEBUG = True
        assert static("own/x.css") == "/static/own/x.css"
    finally:
        static_files.hashed_name.cache_clear()
        finders.get_finder.cache_clear()
