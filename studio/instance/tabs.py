"""The tabs of the instance page. To add one, add a line to `TABS`."""

from __future__ import annotations

from django.http import QueryDict

from engine.models import Instance
from studio.frame.addresses import ignored, own_path
from studio.frame.pieces import HtmxRequest
from studio.instance import code_version, steps_tab
from studio.instance.activity import tab as activity
from studio.instance.code import tab as code
from studio.instance.compare import tab as compare
from studio.instance.page import InstancePage
from studio.instance.tab import Tab

TABS: tuple[Tab, ...] = (
    Tab("", "Steps", "studio/instance/tabs/steps.html", steps_tab.draw, steps_tab.count, steps_tab.TAKES),
    Tab("code", "Diagram & code", code.TEMPLATE, code.draw, takes=code.TAKES, refuses=code_version.refuses),
    Tab(
        "activity",
        "Activity",
        activity.TEMPLATE,
        activity.draw,
        activity.count,
        activity.TAKES,
        activity.refuses,
    ),
    Tab("compare", "Compare", compare.TEMPLATE, compare.draw, takes=compare.TAKES, is_followed=False),
)
BY_NAME = {tab.name: tab for tab in TABS}


def tab_of(name: str) -> Tab:
    """Return a tab by its name in the address, or the first for an unknown one."""
    return BY_NAME.get(name, TABS[0])


def tab_before(request: HtmxRequest, instance: Instance) -> Tab:
    """Return the tab on which an action was pressed: the first if the browser does not say."""
    url = request.htmx.current_url if request.htmx else request.headers.get("Referer")
    path, _, query = own_path(request, url or "").partition("?")
    return tab_of(QueryDict(query).get("tab", "") if path == instance.get_absolute_url() else "")


def ignored_of(given: QueryDict, tab: Tab) -> list[str]:
    """Return the parts of an address that have no effect on this tab."""
    known = {"generation", *tab.takes} - {*tab.refuses(given)}
    return ignored(given, known | {"tab"} if given.get("tab", "") in BY_NAME else known)


def bar(page: InstancePage, tab: Tab) -> list[dict[str, object]]:
    """Return the links of the tab bar."""
    return [
        {
            "label": one.label,
            "count": one.count(page),
            "address": _address(page, one),
            "is_current": one is tab,
        }
        for one in TABS
    ]


def _address(page: InstancePage, tab: Tab) -> str:
    parts = [page.place.rstrip("&"), f"tab={tab.name}" if tab.name else ""]
    query = "&".join(part for part in parts if part)
    return page.instance.get_absolute_url() + (f"?{query}" if query else "")
