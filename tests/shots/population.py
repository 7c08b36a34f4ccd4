"""What the Studio of the screenshots has to show: a morning's work, run by `manage.py shell`."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import Group, User
from django.db import connection
from django.db.models import F

from engine import workflows
from engine.models import Instance
from tests.travel import skip_wait

PEOPLE = {"ana": "operator", "ben": "operator", "ines": "viewer"}
CUSTOMERS = ["Ada", "Grace", "Linus", "Barbara", "Edsger", "Radia", "Donald", "Margaret"]
PASSWORD = "correct-horse-battery-staple"


def people() -> None:
    for name, role in PEOPLE.items():
        User.objects.create_user(name, password=PASSWORD).groups.add(
            Group.objects.get(name=f"reprise-{role}")
        )


def past() -> None:
    """Start what is done by the time that anybody looks."""
    order, ship_order = workflows["order"], workflows["ship-order"]
    for number in range(24):
        params = {
            "customer": CUSTOMERS[number % len(CUSTOMERS)],
            "sku": ["teapot", "cup", "kettle"][number % 3],
            "quantity": 1 + number % 4,
            "packing": 0,
            "fails": "charge" if number == 17 else "nowhere",
        }
        order.start(params, id=f"order-{4680 + number}", by=["ana", "ben", "shop"][number % 3])
    for number in range(9):
        given = {"number": f"A-{4700 + number}", "cents": 990 + 1300 * number}
        ship_order.start(given, id=f"A-{4700 + number}", by="shop").send_event("packed", {"box": "M"})
    backup = workflows["database-backup"].start({}, id="nightly-0341", by="ben")
    backup.send_event("backup-approval", {"approved": True, "comment": "Looks right."}, by="ana")
    workflows["rolling-release"].start({"servers": 3, "cool_down": 0.2}, id="release-41", by="ben")
    workflows["rolling-release"].start(
        {"servers": 3, "cool_down": 0.2, "fail_on": 2}, id="release-42", by="ana"
    )


def present() -> None:
    """Start what is under way while somebody looks."""
    workflows["ship-order"].start({"number": "A-4711", "cents": 12_950}, id="A-4711", by="shop")
    refund = workflows["refund"]
    asked = {"deciders": ["ana", "ben"], "decide_within": "2 days"}
    refund.start(asked, id="refund-A-4711", by="shop")
    other = {"order": "A-4699", "customer": "Globex", "cents": 8_900, "reason": "It came twice.", **asked}
    refund.start(other, id="refund-A-4699", by="ben")
    workflows["order"].start({"customer": "Ada", "packing": 600}, id="order-4712", by="shop")
    workflows["rolling-release"].start({"servers": 4, "cool_down": 300}, id="release-43", by="ana")


def skip_sleeps() -> None:
    """Let the hour of the README's workflow pass."""
    for one in Instance.objects.filter(status="waiting", waiting_for="sleep"):
        skip_wait(one)


def age() -> None:
    """Move what is done into the hours before, each instance a few minutes before the next."""
    with connection.cursor() as cursor:  # what is finished cannot be changed otherwise
        cursor.execute("SET session_replication_role = replica")
    keys = list(Instance.objects.exclude(finished_at=None).order_by("-key").values_list("key", flat=True))
    for place, key in enumerate(keys, start=1):
        back = timedelta(minutes=4 * place, seconds=37 * place % 60)
        moved = {name: F(name) - back for name in ("created_at", "started_at", "finished_at")}
        Instance.objects.filter(key=key).update(**moved)
