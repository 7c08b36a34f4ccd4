"""Write all pages that show tables of the code, and the document of the HTTP API."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from tests.docs.made.openapi import document  # noqa: E402
from tests.docs.made.pages import PAGES, made  # noqa: E402 - the modules import models

for page in PAGES:
    page.write_text(made(page.read_text()))

document.FILE.write_text(document.text())
