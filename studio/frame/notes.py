"""What an action did, shown once on the next page of the Studio.

Django's messages, in a cookie of the Studio's own: the pages of a site neither show them nor lose theirs to the Studio.
"""

from __future__ import annotations

from django.contrib.messages import SUCCESS
from django.contrib.messages.storage.cookie import CookieStorage
from django.http import HttpRequest
from django.http.response import HttpResponseBase


class Notes(CookieStorage):
    cookie_name = "studio-notes"
    level = SUCCESS  # whatever MESSAGE_LEVEL leaves out of the site's messages


def note(request: HttpRequest, text: str) -> None:
    """Show a text on the next page of the Studio."""
    notes_of(request).add(SUCCESS, text)


def notes_of(request: HttpRequest) -> Notes:
    """Return the notes of a request. Iterating over them marks them as shown."""
    notes: Notes | None = getattr(request, "_studio_notes", None)
    if notes is None:
        notes = request._studio_notes = Notes(request)  # type: ignore[attr-defined]
    return notes


def store_notes(request: HttpRequest, response: HttpResponseBase) -> None:
    """Write what the next page shows into the response, and drop what this page has shown."""
    if hasattr(request, "_studio_notes"):
        notes_of(request).update(response)
