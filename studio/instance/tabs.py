"""The tabs of the instance page. To add one, add a line to `TABS`."""

from __future__ import annotations

from django.http import QueryDict

from studio.frame.addresses import ignored
from studio.instance import steps_tab
from studio.instance.activity import tab as activity
from studio.instance.code import tab as code
from studio.instance.compare import tab as compare
from studio.instance.page import InstancePage
from studio.instance.tab import Tab

TABS: tuple[Tab, ...] = (
    Tab("", "Steps", "studio/instance/tabs/steps.html", steps_tab.draw, steps_tab.count, steps_tab.TAKES),
    Tab("code", "Diagram & code", code.TEMPLATE, code.draw, takes=code.TAKES),
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
