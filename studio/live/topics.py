"""The live views that a page can watch."""

from __future__ import annotations

from django.http import QueryDict

from studio.approvals.live import ApprovalsView
from studio.audit.live import AuditView
from studio.bulk.live import BulkJobsView, BulkJobView
from studio.charts.live import ChartsView
from studio.errors.live import ErrorsView, ErrorView
from studio.frame.live_view import LONGEST_QUERY, LiveView
from studio.home.live import HomeView
from studio.instance.live import InstanceView
from studio.instances.live import InstancesView
from studio.schedules.live import SchedulesView
from studio.tv.live import WallView
from studio.webhooks.live import WebhooksView, WebhookView
from studio.workers.live import WorkersView
from studio.workflow.live import WorkflowView
from studio.workflows.live import WorkflowsView

VIEWS: tuple[type[LiveView], ...] = (
    HomeView,
    WallView,
    WorkflowsView,
    WorkflowView,
    InstancesView,
    InstanceView,
    ErrorsView,
    ErrorView,
    ApprovalsView,
    ChartsView,
    SchedulesView,
    AuditView,
    BulkJobsView,
    BulkJobView,
    WebhooksView,
    WebhookView,
    WorkersView,
)


class UnknownViewError(Exception):
    """There is no such topic."""


def view_of(query: str | QueryDict) -> LiveView:
    """Return the live view in a query string. Raises UnknownViewError."""
    given = QueryDict(query[:LONGEST_QUERY]) if isinstance(query, str) else query
    text = given.get("topic", "")
    for view in VIEWS:
        if topic := view.topic.fullmatch(text):
            return view.of(topic, given)
    raise UnknownViewError(text)
