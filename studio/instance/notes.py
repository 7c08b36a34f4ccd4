"""Add a note to an instance."""

from __future__ import annotations

from django.http import Http404, HttpResponse, HttpResponseRedirect

from engine.models import Instance
from engine.steer import notes
from engine.values.errors import InstanceNotFoundError, InvalidValueError, LimitError
from studio.access.permissions import Verb
from studio.forms.tokens import token_of
from studio.frame.guard import guard
from studio.frame.notes import note
from studio.frame.pieces import HtmxRequest
from studio.instance.views import show_instance

LONGEST_SHOWN = 20_000  # characters of a refused note that stay in its field


@guard(post=Verb.OPERATE, action=notes.VERB)
def add_note(request: HtmxRequest, name: str, id: str) -> HttpResponse:
    """Add it. The form's token makes a form that is sent twice one note."""
    instance = Instance.objects.defer("params", "output", "error").filter(workflow=name, id=id).first()
    if instance is None:
        raise Http404
    text = request.POST.get("text", "")
    try:
        notes.add_note(instance, text, by=request.user, form=token_of(request.POST.get("token", "")))
    except (InvalidValueError, LimitError) as error:
        typed = text.replace("\0", "")[:LONGEST_SHOWN]
        return show_instance(request, name, id, status=422, refused=str(error), note_text=typed)
    except InstanceNotFoundError:
        raise Http404 from None
    note(request, "Added your note.")
    is_in_stream = request.GET.get("tab") == "activity"
    return HttpResponseRedirect(instance.get_absolute_url() + ("?tab=activity" if is_in_stream else "#notes"))
