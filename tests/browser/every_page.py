"""Every page of the Studio, with something on it: what the tests of all pages go through."""

from __future__ import annotations

import json
import time

from playwright.sync_api import Page, expect

from tests.browser.test_webhooks import create, post
from tests.live import PASSWORD, LiveStack
from tests.studio.routes import rules

ROLES = ("viewer", "approver", "operator", "admin")

# What answers to GET, but is no page: fragments, files, redirects, and what programs ask.
NO_PAGES = {
    *("api-docs-with-slash", "audit-csv", "audit-json", "payload", "icons", "socket", "healthz", "readyz"),
    *(
        "joined",
        "charts-csv",
        "within",
        "pane",
        "pane-start",
        "pane-result",
        "people",
        "instance-suggestions",
        "instance-paths",
        "token-matches",
        "view-counts",
        "live-frame",
    ),
}

# Addresses without a part that depends on what there is.
PLAIN = {
    "home": ("/", "/?who=mine"),
    "workflows": ("/workflows/",),
    "workflow": (
        *("/workflows/stumble/", "/workflows/gate/"),
        *(f"/workflows/stumble/?tab={tab}" for tab in ("versions", "settings")),
    ),
    "workflow-code": (
        *("/workflows/stumble/code/", "/workflows/gate/code/"),
        "/workflows/gate/code/?against=0123456789abcdef",
    ),
    "start": (
        *("/workflows/process-order/start/", "/workflows/process-order/start/?template=every-k3f9x2ab"),
        *("/workflows/gate/start/", "/workflows/tick/start/"),
    ),
    "start-many": ("/workflows/process-order/start/many/", "/workflows/tick/start/many/"),
    "pause_workflows": ("/pause-workflows/?workflow=stumble",),
    "resume_workflows": ("/resume-workflows/?workflow=snooze",),
    "errors": ("/errors/?state=", "/errors/?state=resolved"),
    "approvals": ("/approvals/?box=open", "/approvals/"),
    "instances": ("/instances/", "/instances/?query=nothing-like-it", "/instances/?query=a:b"),
    "saved-views": ("/instances/views/",),
    "jump": ("/jump/?q=st",),
    "charts": ("/charts/", "/charts/?range=90d", "/charts/?workflow=stumble&range=6h"),
    "shortcuts": ("/shortcuts/",),
    "schedules": ("/schedules/", "/schedules/?view=week"),
    "tv": ("/tv/",),
    "bulk-jobs": ("/bulk/",),
    "bulk-new": (
        "/bulk/new/?action=retry&q=status:errored+workflow:stumble",
        "/bulk/new/?action=restart&q=workflow:tick",
    ),
    "workers": ("/workers/",),
    "tokens": ("/tokens/",),
    "team-tokens": ("/tokens/team/",),
    "people-tokens": ("/tokens/people/",),
    "webhooks": ("/webhooks/",),
    "webhook-new": ("/webhooks/new/",),
    "audit": ("/audit/",),
    "password": ("/password/",),
    "preferences": ("/preferences/",),
    "api-docs": ("/api/v1/docs",),
    "sign-in": ("/sign-in/",),
}
NOT_THERE = ("/nowhere/", "/workflows/none/", "/workflows/nap/instances/none/")
# Pages that an installation without an instance has.
EMPTY = (
    *(
        "home",
        "workflows",
        "workflow",
        "errors",
        "approvals",
        "instances",
        "saved-views",
        "schedules",
        "charts",
        "workers",
        "bulk-jobs",
    ),
    *("tokens", "team-tokens", "people-tokens", "webhooks", "audit"),
)

FILL = f"""
import json
from django.contrib.auth.models import Group, User
from engine import bulk, workflows
from engine.models import Worker
from engine.steer import pauses
from studio.models import StartTemplate
for role in {ROLES}:
    if not User.objects.filter(username=f"every-{{role}}").exists():
        user = User.objects.create_user(f"every-{{role}}", password={PASSWORD!r})
        user.groups.add(Group.objects.get(name=f"reprise-{{role}}"))
starts = {{
    "gate": {{"message": "Refund **1,240 €** to ACME?"}},
    "listen-for": ["one", "two"],
    "nap": {{"seconds": 900}},
    "process-order": {{"customer": "Ana", "items": [{{"sku": "a-1", "quantity": 2}}]}},
    "stumble": {{"attempts": 2}},
    "tick": None,
    "wire": None,
}}
found = {{name: workflows[name].start(params).get_absolute_url() for name, params in starts.items()}}
job = bulk.start("retry", "workflow:tick", by="test", reason="To look at.")
worker = Worker.objects.order_by("-key")[0]
saved = {{"workflow": "process-order", "params": '{{"customer": "Ana", "items": 1}}'}}
saved["name"] = "A template with a rather long name, as people give them"
StartTemplate.objects.get_or_create(slug="every-k3f9x2ab", defaults=saved)
print(json.dumps(found | {{"worker": worker.key, "job": job.id}}))
"""


def fill(stack: LiveStack, page: Page) -> dict[str, tuple[str, ...]]:
    """Make something for each page to show; return the addresses by the name of their route. `page` is an admin's."""
    found = json.loads(stack.django(FILL))
    for name, end in {"stumble": "errored", "wire": "paused", "tick": "complete", "gate": "approval"}.items():
        page.goto(found[name])
        expect(page.locator("#head .chip")).to_have_text(end)
    page.goto("/errors/?workflow=stumble&state=")
    error = page.locator("tr[id^=e-] .what a").first.get_attribute("href")
    address, secret = create(page, f"every-{time.time():.0f}")
    hook = page.url
    post(address, secret, "one")
    page.reload()
    delivery = page.locator("table.deliveries a[href*=deliveries]").first.get_attribute("href")
    wire, stumble = found["wire"], found["stumble"]
    return PLAIN | {
        "error": (f"{error}", f"{error}?span=hour", f"{error}?kind=went_on"),
        "instance": (
            *(found[name] for name in sorted(found) if name not in ("worker", "job")),
            *(f"{stumble}?tab=activity", f"{stumble}?tab=compare", f"{wire}?tab=compare"),
            f"{stumble}?tab=code",
        ),
        "bulk-job": (f"/bulk/{found['job']}/",),
        "restart": (f"{stumble}restart/",),
        "decide": (f"{wire}steps/1/decide/",),
        "worker-drain": (f"/workers/{found['worker']}/drain/",),
        "webhook": (hook,),
        "webhook-edit": (f"{hook}edit/",),
        "webhook-delivery": (f"{delivery}",),
    }


def pages() -> set[str]:
    """Return the names of the routes that answer to GET with a page."""
    return {name for name, rule in rules().items() if "GET" in rule.methods} - NO_PAGES
