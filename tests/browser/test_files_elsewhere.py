"""A site whose static files are on another host, as behind a CDN or in an object store."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from studio.embedded import EmbeddedServer
from tests.browser.conftest import Complaints, profile
from tests.projects.project import new_project

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

PEOPLE = 'from django.contrib.auth.models import User; User.objects.create_superuser("root", password="p-4711-xyz")'
USED = """() => [...document.querySelectorAll("svg use")].map((use) => use.getBoundingClientRect().width)"""


class OtherHost(SimpleHTTPRequestHandler):
    """Lets pages of other origins read its files, as fonts need it."""

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def other_host(folder: Path) -> Iterator[str]:
    """Serve a folder from an origin of its own."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(OtherHost, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def url(tmp_path: Path, postgresql: EmbeddedServer) -> Iterator[str]:
    folder = tmp_path / "project"
    folder.mkdir()
    with new_project(folder, postgresql) as project, other_host(folder / "collected") as files:
        project.follow_readme()
        manifest = "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
        project.append(
            "shop/settings.py",
            f'DEBUG = False\nALLOWED_HOSTS = ["127.0.0.1"]\nSTATIC_URL = "{files}/s/"\n'
            'STATIC_ROOT = BASE_DIR / "collected" / "s"\n'
            f'STORAGES = {{"staticfiles": {{"BACKEND": "{manifest}"}}}}\n',
        )
        project.manage("migrate", "-v", "0")
        project.manage("collectstatic", "--noinput", "-v", "0")
        project.shell(PEOPLE)
        program = ("-m", "daphne", "-p", "PORT", "studio.asgi:application")
        with project.serving(*program, DJANGO_SETTINGS_MODULE="shop.settings") as url:
            yield url


def test_styles_scripts_fonts_and_icons_are_used(url: str, browser: Browser, complaints: Complaints) -> None:
    with profile(browser, complaints) as context:
        page: Page = context.new_page()
        page.goto(f"{url}/ops/")
        page.fill("input[name=username]", "root")
        page.fill("input[name=password]", "p-4711-xyz")
        page.press("input[name=password]", "Enter")
        # Scripts run, and the socket is open.
        expect(page.locator("body")).to_contain_text("Live")
        fonts = page.evaluate("document.fonts.ready.then(() => document.fonts.check('16px Inter'))")
        widths = page.evaluate(USED)
        assert fonts
        assert len(widths) > 5
        # An icon that the browser refuses has no size.
        assert any(width > 0 for width in widths)
        assert page.evaluate("getComputedStyle(document.querySelector('.shell')).display") != "block"
