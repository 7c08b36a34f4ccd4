"""The requests that are timed. To add one, add a line: its path and its query; names in braces are explained below."""

from __future__ import annotations

from typing import NamedTuple


class Asked(NamedTuple):
    """A GET of a page, with a session, or of the API, with a token."""

    path: str
    query: str = ""
    by_token: bool = False


def _api(path: str, query: str = "") -> Asked:
    return Asked(f"/api/v1{path}", query, by_token=True)


# What braces stand for: the address of the newest instance that fits, below `workflows/`, or a value of it.
INSTANCES = {
    "complete": "status = 'complete' AND parent_key IS NULL",
    "errored": "status = 'errored'",
    "sleeping": "status = 'waiting' AND waiting_for = 'sleep'",
    "retrying": "status = 'waiting' AND waiting_for = 'retry'",
    "asking": "key = (SELECT instance_id FROM engine_open_request ORDER BY opened_at DESC LIMIT 1)",
    "parent": "key = (SELECT max(parent_key) FROM engine_instance)",
    "child": "parent_key IS NOT NULL",
    "restarted": "generation > 1",
}
TABBED = ("complete", "errored", "asking", "parent")  # of these, the other tabs as well
TABS = ("activity", "code")
VALUES = {
    "newest_id": "SELECT id FROM engine_instance ORDER BY key DESC LIMIT 1",
    "oldest_id": "SELECT id FROM engine_instance ORDER BY key LIMIT 1",
    "middle": "SELECT max(key) / 2 FROM engine_instance",
    "audit_middle": "SELECT max(key) / 2 FROM engine_audit",
    "failure": "SELECT fingerprint FROM engine_instance WHERE fingerprint IS NOT NULL AND status = 'errored' LIMIT 1",
    "day": "SELECT (max(created_at) - interval '45 days')::date FROM engine_instance",
}

PAGES = (
    Asked("/"),
    Asked("/workflows/"),
    Asked("/workflows/fulfil-order/"),
    Asked("/workflows/renew-subscription/"),
    Asked("/workflows/rotate-keys/"),
    Asked("/errors/"),
    Asked("/errors/", "state=resolved"),
    Asked("/errors/", "workflow=fulfil-order"),
    Asked("/errors/", "query=timeout"),
    Asked("/errors/{failure}/"),
    Asked("/errors/{failure}/", "span=hour&kind=went_on"),
    Asked("/bulk/"),
    Asked("/bulk/new/", "action=retry&q=error-group:{failure}+status:errored"),
    Asked("/instances/"),
    Asked("/instances/", "before={middle}"),
    Asked("/instances/", "after={middle}"),
    *(
        Asked("/instances/", f"status={status}")
        for status in ("open", "closed", "queued", "running", "sleeping", "waiting", "approval", "retrying")
    ),
    *(Asked("/instances/", f"status={status}") for status in ("paused", "complete", "errored", "terminated")),
    Asked("/instances/", "workflow=fulfil-order"),
    Asked("/instances/", "workflow=rotate-keys"),
    Asked("/instances/", "workflow=fulfil-order&status=errored"),
    Asked("/instances/", "workflow=rotate-keys&status=paused"),
    Asked("/instances/", "workflow=fulfil-order&status=approval"),
    Asked("/instances/", "q={newest_id}"),
    Asked("/instances/", "q={oldest_id}"),
    Asked("/instances/", "q=order-1"),
    Asked("/instances/", "q=rotation-"),
    Asked("/instances/", "q=no-such-id"),
    Asked("/instances/", "q=order-1&status=errored"),
    Asked("/_f/live/", "topic=list"),
    Asked("/_f/live/", "topic=home"),
    Asked("/approvals/"),
    Asked("/approvals/", "box=done"),
    Asked("/schedules/"),
    Asked("/schedules/", "view=week"),
    Asked("/tv/"),
    Asked("/workers/"),
    Asked("/_f/live/", "topic=workers"),
    *(Asked("/charts/", f"range={one}") for one in ("1h", "6h", "24h", "7d", "30d", "90d")),
    Asked("/charts/", "range=90d&workflow=fulfil-order"),
    Asked("/_f/live/", "topic=charts&range=24h"),
    Asked("/audit/"),
    Asked("/audit/", "before={audit_middle}"),
    Asked("/audit/", "verb=restart"),
    Asked("/audit/", "person=ana"),
    Asked("/audit/", "person=nobody"),
    Asked("/audit/", "verb=terminate&person=priya"),
    Asked("/audit/", "workflow=rotate-keys"),
    Asked("/audit/", "id={oldest_id}"),
    Asked("/audit/", "since={day}&until={day}"),
    Asked("/tokens/"),
    Asked("/tokens/team/"),
    Asked("/tokens/people/"),
    Asked("/webhooks/"),
    Asked("/webhooks/new/"),
    Asked("/api/v1/docs"),
    *(Asked(f"/workflows/{{{one}}}/") for one in INSTANCES),
    *(Asked(f"/workflows/{{{one}}}/", f"tab={tab}") for one in TABBED for tab in TABS),
    Asked("/workflows/{restarted}/", "generation=1"),
    Asked("/workflows/{errored}/restart/"),
    Asked("/workflows/{errored}/payload/error/"),
    Asked("/healthz"),
    Asked("/readyz"),
)
API = (
    _api("/workflows"),
    _api("/workflows/fulfil-order"),
    _api("/instances"),
    _api("/instances", "cursor={middle}"),
    _api("/instances", "status=errored"),
    _api("/instances", "status=open"),
    _api("/instances", "status=paused&workflow=rotate-keys"),
    _api("/instances", "tag=vip"),
    _api("/instances", "tag=batch-7"),
    _api("/instances", "tag=no-such-tag"),
    _api("/instances", "q=order-1"),
    _api("/instances", "q=no-such-id"),
    _api("/instances", "created_after={day}T00:00:00Z&created_before={day}T01:00:00Z"),
    _api("/requests"),
    _api("/audit"),
    _api("/audit", "verb=pause"),
    _api("/health"),
    _api("/workers"),
    _api("/workflows/{complete}"),
    _api("/workflows/{errored}/steps"),
    _api("/workflows/{parent}/children"),
)
ASKED = (*PAGES, *API)
