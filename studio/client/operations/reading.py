"""Instances and what they have recorded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from studio.client import answers
from studio.client.answers import JSON
from studio.client.call import Call, Pages, query_of
from studio.client.operations.making import PAGE, address_of, pages_of


def instances(
    *,
    workflow: str | None = None,
    status: str | Sequence[str] | None = None,
    tag: str | None = None,
    q: str | None = None,
    created_after: datetime | None = None,
    created_before: datetime | None = None,
    query: str | None = None,
    sort: answers.Sort | None = None,
) -> Pages[answers.Listed]:
    """Iterate over instances, newest first. `status` takes statuses, `open` and `finished`; `q` begins the id.

    `query` is a search, such as `status:open params.region=eu started:<2h`; `sort` is another order. A wrong term
    raises InvalidError.
    """
    return pages_of(
        "/instances",
        "instances",
        workflow=workflow,
        status=status,
        tag=tag,
        q=q,
        created_after=created_after,
        created_before=created_before,
        query=query,
        sort=sort,
    )


def instances_page(
    *,
    workflow: str | None = None,
    status: str | Sequence[str] | None = None,
    tag: str | None = None,
    q: str | None = None,
    created_after: datetime | None = None,
    created_before: datetime | None = None,
    query: str | None = None,
    sort: answers.Sort | None = None,
    limit: int = PAGE,
    cursor: str | None = None,
) -> Call[answers.InstancesPage]:
    """Return one page of instances, with the cursor of the next, and how much a search has looked at."""
    parameters = query_of(
        workflow=workflow,
        status=status,
        tag=tag,
        q=q,
        created_after=created_after,
        created_before=created_before,
        query=query,
        sort=sort,
        limit=limit,
        cursor=cursor,
    )
    return Call("GET", "/instances", parameters)


def instance(
    workflow: str,
    id: str,
    *,
    generation: int | None = None,
    full: bool = False,
    limit: int | None = None,
    hide_done_items: bool = False,
) -> Call[answers.Record]:
    """Return an instance with its newest steps, events, children and actions, up to `limit` of each (50).

    `full` adds outputs, payloads and tracebacks. `etag` stands for its state: pass it as `if_match`.
    """
    query = query_of(generation=generation, full=full, limit=limit, hide_done_items=hide_done_items)
    return Call("GET", address_of(workflow, id), query, has_etag=True)


def steps(
    workflow: str,
    id: str,
    *,
    generation: int | None = None,
    parent: int | None = None,
    status: str | Sequence[str] | None = None,
) -> Pages[answers.Step]:
    """Iterate over the steps of an instance, newest first, without outputs. `parent=0` means those at the top."""
    return pages_of(
        address_of(workflow, id, "steps"), "steps", generation=generation, parent=parent, status=status
    )


def step(workflow: str, id: str, seq: int, *, generation: int | None = None) -> Call[answers.StepWithLogs]:
    """Return a step with its output, attempts and log."""
    return Call("GET", address_of(workflow, id, "steps", seq), query_of(generation=generation))


def events(workflow: str, id: str, *, state: str | None = None) -> Pages[answers.Event]:
    """Iterate over the events of an instance with their payloads, newest first."""
    return pages_of(address_of(workflow, id, "events"), "events", state=state)


def events_page(
    workflow: str, id: str, *, state: str | None = None, limit: int = PAGE, cursor: str | None = None
) -> Call[answers.EventsPage]:
    """Return one page of events, with their total and the cursor of the next page."""
    return Call("GET", address_of(workflow, id, "events"), query_of(state=state, limit=limit, cursor=cursor))


def children(workflow: str, id: str) -> Pages[answers.Relation]:
    """Iterate over the instances that it has started, newest first."""
    return pages_of(address_of(workflow, id, "children"), "children")


def generations(workflow: str, id: str) -> Pages[answers.Generation]:
    """Iterate over its earlier generations, newest first."""
    return pages_of(address_of(workflow, id, "generations"), "generations")


def logs(
    workflow: str, id: str, *, step: int | None = None, generation: int | None = None
) -> Pages[answers.LogLine]:
    """Iterate over the log of an instance, newest first."""
    return pages_of(address_of(workflow, id, "logs"), "logs", step=step, generation=generation)


def payload(
    workflow: str, id: str, what: str, *, step: int | None = None, generation: int | None = None
) -> Call[JSON]:
    """Return `params`, `output` or `error` of an instance, or `output` or `error` of a step, as it is stored."""
    parts = ("payloads", what) if step is None else ("steps", step, "payloads", what)
    return Call("GET", address_of(workflow, id, *parts), query_of(generation=generation), has_times=False)


def actions(workflow: str, id: str) -> Pages[answers.ActionOn]:
    """Iterate over what people and programs did to an instance, newest first."""
    return pages_of(address_of(workflow, id, "audit"), "actions")
