"""Notes on instances."""

from __future__ import annotations

from django.http import HttpResponse
from ninja import Router

from engine.status import documents
from engine.steer import notes
from studio.api.answers import answer
from studio.api.auth import ApiRequest
from studio.api.fields import NewNote
from studio.api.operation import writes
from studio.api.operations.instances import ONE
from studio.api.reading import instance_of
from studio.api.schemas.history import NoteAnswer

router = Router(tags=["Operations"])


@writes(router, f"{ONE}/notes", NoteAnswer, action=notes.VERB, status=201, summary="Add a note")
def add_note(request: ApiRequest, name: str, id: str, body: NewNote) -> HttpResponse:
    """Add a note to an instance, in any status. It becomes a row of the audit trail: `verb=note` lists them.

    `data.mentions` has the active users whom the text names with an `@`. Nothing of the instance changes.
    """
    row = notes.add_note(instance_of(name, id), body.text, by=request.auth)
    return answer({"note": documents.action(row)}, 201)
