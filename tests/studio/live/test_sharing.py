"""What many tabs see alike is drawn once, in a rhythm, and never shown to somebody whom it does not concern."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from itertools import count

import pytest
from asgiref.sync import sync_to_async

from engine.models import Instance
from studio.access.people import in_thread
from studio.frame.hub import hub
from studio.frame.pieces import Drawing, Piece
from studio.frame.unchanged import Unchanged
from studio.home.live import HomeView
from studio.instances.live import InstancesView
from studio.live.sharing import MOST_KEPT, Beat, Shared, gallery
from tests.studio import factories
from tests.studio.live.conftest import Open, frame, until_it_listens

SOON = 0.05  # between two drawings


class Artist:
    """Draws after a while, and counts."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.began: list[float] = []
        self.seconds = seconds
        self.fails = False

    async def __call__(self) -> Drawing:
        self.began.append(time.monotonic())
        await asyncio.sleep(self.seconds)
        if self.fails:
            raise ValueError("no paint")
        return Drawing({"a": Piece(str(len(self.began)))})


async def seen(shared: Shared, draw: Artist, *, since: float = -math.inf, by: int = 1) -> str:
    drawing, _ = await shared.drawing(draw, by=by, knows=hub().changes, since=since, seconds_between=SOON)
    return drawing.pieces["a"].html


async def test_all_who_ask_at_once_get_the_drawing_of_the_first() -> None:
    shared, draw = Shared(), Artist(0.05)
    assert await asyncio.gather(*(seen(shared, draw) for _ in range(200))) == ["1"] * 200


async def test_it_is_drawn_again_after_a_change_and_not_without_one() -> None:
    shared, draw = Shared(), Artist()
    assert [await seen(shared, draw), await seen(shared, draw)] == ["1", "1"]
    hub().tell(None)
    assert await seen(shared, draw) == "2"


async def test_a_change_during_a_drawing_is_in_the_next_one() -> None:
    shared, draw = Shared(), Artist(0.05)
    first = asyncio.create_task(seen(shared, draw))
    await asyncio.sleep(0.02)
    hub().tell(None)
    assert [await seen(shared, draw), await first] == ["2", "1"]


async def test_while_everything_changes_there_is_time_between_two_drawings() -> None:
    shared, draw = Shared(), Artist()
    until = time.monotonic() + 10 * SOON
    while time.monotonic() < until:
        hub().tell(None)
        await asyncio.gather(*(seen(shared, draw) for _ in range(20)))
    # Each begins a moment after its time has come, now more and now less.
    gaps = [after - before for before, after in zip(draw.began, draw.began[1:], strict=False)]
    assert gaps
    assert sum(gaps) / len(gaps) >= SOON * 0.95
    assert min(gaps) >= SOON / 2


async def test_after_a_slow_drawing_there_is_more_time() -> None:
    shared, draw = Shared(), Artist(0.1)
    for _ in range(2):
        hub().tell(None)
        await seen(shared, draw)
    first, second = draw.began
    assert second - first >= 0.29


async def test_one_that_is_too_old_is_drawn_again_without_a_change() -> None:
    shared, draw = Shared(), Artist()
    await seen(shared, draw)
    assert await seen(shared, draw, since=time.monotonic()) == "2"


async def test_after_one_that_failed_the_next_asks_again_but_not_at_once() -> None:
    shared, draw = Shared(), Artist()
    draw.fails = True
    with pytest.raises(ValueError, match="no paint"):
        await seen(shared, draw)
    draw.fails = False
    assert await seen(shared, draw) == "2"
    assert draw.began[1] - draw.began[0] >= SOON * 0.99


@pytest.mark.django_db(transaction=True)
async def test_what_is_drawn_for_several_people_at_one_moment_is_read_once() -> None:
    """Though something is written between the drawings: it is in the next ones, which begin together as well."""
    kept, numbers, beat = Unchanged[int](most=2), count(), Beat()

    def read() -> int:
        found = kept.read("a", lambda: next(numbers))
        factories.instance("queued")
        return found

    async def draw() -> Drawing:
        return Drawing({"a": Piece(str(await in_thread(read)))})

    async def seen_by(shared: Shared) -> str:
        drawing, _ = await shared.drawing(
            draw, by=1, knows=hub().changes, since=-math.inf, seconds_between=SOON, beat=beat
        )
        return drawing.pieces["a"].html

    ana, zoe = Shared(), Shared()
    assert [await seen_by(one) for one in (ana, zoe)] == ["0", "0"]
    hub().tell(None)
    assert [await seen_by(one) for one in (zoe, ana)] == ["1", "1"]


async def test_one_that_was_cancelled_is_drawn_for_the_others() -> None:
    shared, draw = Shared(), Artist(0.05)
    first = asyncio.create_task(seen(shared, draw))
    await asyncio.sleep(0.02)
    others = [asyncio.create_task(seen(shared, draw)) for _ in range(3)]
    await asyncio.sleep(0)
    first.cancel()
    assert await asyncio.gather(*others) == ["2"] * 3


async def test_a_bounded_number_is_kept() -> None:
    for number in range(MOST_KEPT + 1):
        gallery()[number].is_personal = True
    assert not gallery()[0].is_personal
    assert gallery()[MOST_KEPT].is_personal


@pytest.mark.django_db(transaction=True)
async def test_tabs_with_equal_rights_share_a_list_and_have_a_home_of_their_own(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: Counter[str] = Counter()
    for view in (HomeView, InstancesView):

        def counted(
            self: object, user: object, draw: object = view.drawing, name: str = view.__name__
        ) -> Drawing:
            drawn[name] += 1
            return draw(self, user)  # type: ignore[operator, no-any-return]

        monkeypatch.setattr(view, "drawing", counted)
    people = [await sync_to_async(factories.person)("root") for _ in range(3)]
    for topic in ("list", "home"):
        tabs = [await opened(f"topic={topic}", person) for person in people for _ in range(2)]
        await asyncio.gather(*(tab.connect() for tab in tabs))
        await asyncio.gather(*(frame(tab) for tab in tabs))
    # A tab that opens while one is drawn waits for the next; and so it is with what the hub tells first.
    assert drawn["InstancesView"] <= 4
    assert 3 <= drawn["HomeView"] <= 9


@pytest.mark.django_db(transaction=True)
async def test_a_new_tab_is_not_sent_what_is_older_than_its_page(opened: Open) -> None:
    """The notification of what the page shows already may not have arrived yet."""
    person = await sync_to_async(factories.person)("root")
    instance = await sync_to_async(factories.instance)("running", started_by="ana")
    await (await opened("topic=schedules", person)).connect()
    await until_it_listens()  # what the hub tells then has been heard
    first = await opened(f"topic=instance:{instance.key}", person)
    await first.connect()
    assert "ana" in await frame(first)
    await Instance.objects.filter(key=instance.key).aupdate(started_by="zoe")  # nobody is told
    second = await opened(f"topic=instance:{instance.key}", person)
    await second.connect()
    assert "zoe" in await frame(second)
