"""Instances in Django's admin, if the site has one: read-only, without values, with links to the Studio.

Django imports this module only if the admin is installed.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch
from django.utils.functional import cached_property
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from engine.models import Attempt, Instance, Step
from engine.status.search import id_begins, workflow_names
from engine.values.states import InstanceStatus

MOST_STEPS = 100
MOST_ATTEMPTS = 100
MOST_ROWS = 10_000  # of one list; counting more of them takes long

COLUMNS = ("workflow", "id", "status", "waiting_for", "created_at", "started_at", "finished_at")
FACTS = ("generation", "rollback", "started_by", "paused_at")


class BoundedPaginator(Paginator):
    """Counts no more rows than it needs."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return int(rows.order_by()[:MOST_ROWS].count())


class WorkflowFilter(admin.SimpleListFilter):
    title = parameter_name = "workflow"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in workflow_names()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(workflow=self.value()) if self.value() else queryset


class StatusFilter(admin.SimpleListFilter):
    title = parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(status, status.replace("_", " ")) for status in InstanceStatus]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        # The index begins with the workflow.
        return (
            queryset.filter(workflow__in=workflow_names(), status=self.value()) if self.value() else queryset
        )


@admin.register(Instance)
class InstanceAdmin(admin.ModelAdmin):
    """Params, outputs, errors and options may hold secrets: they are neither read nor shown."""

    list_display = (*COLUMNS, "studio")
    list_display_links = ("id",)
    list_filter = (WorkflowFilter, StatusFilter)
    list_per_page = 50
    list_max_show_all = 0
    show_full_result_count = False
    paginator = BoundedPaginator
    ordering = ("-key",)
    sortable_by = ()
    actions = None
    search_fields = ("id",)
    search_help_text = "The beginning of an id"
    fields = (*COLUMNS, *FACTS, "studio", "steps", "attempts")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Instance]:
        return super().get_queryset(request).only("key", *COLUMNS, *FACTS)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        wanted = search_term.strip()
        return (queryset.filter(id_begins(wanted)) if wanted else queryset), False

    def view_on_site(self, obj: Instance) -> str | None:
        return _address(obj)

    @admin.display(description="Studio")
    def studio(self, obj: Instance) -> SafeString | str:
        address = _address(obj)
        return format_html('<a href="{}">Open</a>', address) if address else "-"

    @admin.display(description=f"Steps (the latest {MOST_STEPS})")
    def steps(self, obj: Instance) -> SafeString:
        names = ("seq", "kind", "name", "count", "status", "attempts", "started_at", "finished_at")
        rows = Step.objects.filter(instance_id=obj.key, generation=obj.generation).order_by("-seq")
        return _table(names, rows.values_list(*names)[:MOST_STEPS])

    @admin.display(description=f"Attempts (the latest {MOST_ATTEMPTS})")
    def attempts(self, obj: Instance) -> SafeString:
        names = ("step_seq", "phase", "number", "status", "worker", "started_at", "finished_at")
        rows = Attempt.objects.filter(instance_id=obj.key, generation=obj.generation)
        return _table(names, rows.order_by("-step_seq", "-number").values_list(*names)[:MOST_ATTEMPTS])


def _address(instance: Instance) -> str | None:
    try:
        return instance.get_absolute_url()
    except NoReverseMatch:
        return None


def _table(names: tuple[str, ...], rows: Any) -> SafeString:
    head = format_html_join("", "<th>{}</th>", ((name.replace("_", " "),) for name in names))
    lines = (
        format_html_join("", "<td>{}</td>", (("" if one is None else one,) for one in row)) for row in rows
    )
    return format_html(
        "<table><tr>{}</tr>{}</table>", head, format_html_join("", "<tr>{}</tr>", ((x,) for x in lines))
    )
