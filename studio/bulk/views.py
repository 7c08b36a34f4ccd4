"""The list of bulk jobs, and the page of one."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.safestring import mark_safe

from studio.access.permissions import Verb, allowed
from studio.bulk import queries
from studio.bulk.address import JobAddress, list_address
from studio.bulk.live import draw_job, row_piece
from studio.frame.addresses import cursor, ignored
from studio.frame.guard import guard
from studio.frame.pieces import page


@guard(get=Verb.VIEW)
def jobs(request: HttpRequest) -> HttpResponse:
    before = cursor(request.GET.get("before", ""))
    found = queries.jobs_page(request.user, before)
    topic = {"topic": "bulk", "keys": ",".join(str(row.key) for row in found.rows)}
    if before is None:
        topic["top"] = str(found.top)
    return page(
        request,
        "studio/bulk/jobs.html",
        topic=urlencode(topic),
        rows=[mark_safe(row_piece(row).html) for row in found.rows],  # noqa: S308 - the output of a template
        first=list_address() if before is not None else "",
        older=list_address(found.older) if found.older else "",
        ignored=ignored(request.GET, {"before"} if before is not None else set()),
    )


@guard(get=Verb.VIEW)
def job(request: HttpRequest, id: str) -> HttpResponse:
    return show_job(request, id)


def show_job(
    request: HttpRequest, id: str, *, status: int = 200, refused: str = "", dialog: str = "", reason: str = ""
) -> HttpResponse:
    """Render the page of a job, also after a refused action. `dialog` is one to open again."""
    found = queries.find(id, request.user)
    if found is None:
        raise Http404
    asked = JobAddress.of(id, request.GET)
    return page(
        request,
        "studio/bulk/job.html",
        draw_job(asked, found, request.user),
        topic=urlencode({"topic": f"bulk:{id}", **asked.parameters}),
        status=status,
        row=found,
        job=found.job,
        address=reverse("studio:bulk-job", args=[id]),
        ignored=asked.ignored,
        may_act=allowed(request.user, Verb.OPERATE, None),
        refused=refused,
        dialog=dialog,
        reason=reason,
    )
