"""The search of the list: terms as chips, wrong terms, time windows, earlier addresses, hostile text."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import OperationalError
from django.test import Client
from psycopg.errors import QueryCanceled

from engine.status.searching import counting, searching, windows
from engine.values.query.parsing import LONGEST
from tests.studio import factories

pytestmark = pytest.mark.django_db

CHIP = re.compile(
    r'<li class="term([^"]*)">\s*(?:<svg.*?</svg>\s*)?<span title="[^"]*">([^<]*)</span>\s*<a href="([^"]*)"',
    re.DOTALL,
)


def page_of(client: Client, **given: str) -> str:
    answer = client.get("/instances/", given)
    assert answer.status_code == 200
    return answer.content.decode()


def chips(page: str) -> list[tuple[str, str]]:
    """Return the words of the chips, and the search that is left without each."""
    found = []
    for _, words, address in CHIP.findall(page):
        left = parse_qs(urlsplit(html.unescape(address)).query).get("query", [""])[0]
        found.append((html.unescape(words), left))
    return found


def typed(page: str) -> str:
    match = re.search(r'id="query" name="query" value="([^"]*)"', page)
    assert match
    return html.unescape(match[1])


def test_terms_are_chips_in_words_that_can_be_dropped(operator: Client) -> None:
    text = "workflow:orders status:open,errored -tag:vip started:<7d params.total:>100 order-4"
    page = page_of(operator, query=text)
    assert typed(page) == text
    assert chips(page) == [
        ("workflow is orders", "status:open,errored -tag:vip started:<7d params.total:>100 order-4"),
        ("status is open or errored", "workflow:orders -tag:vip started:<7d params.total:>100 order-4"),
        ("not: has the tag vip", "workflow:orders status:open,errored started:<7d params.total:>100 order-4"),
        ("started in the last 7 d", "workflow:orders status:open,errored -tag:vip params.total:>100 order-4"),
        ("params.total is more than 100", "workflow:orders status:open,errored -tag:vip started:<7d order-4"),
        (
            "ID begins with “order-4” or, if none does, its error contains it",
            "workflow:orders status:open,errored -tag:vip started:<7d params.total:>100",
        ),
    ]
    assert '<a class="button link" href="/instances/">Clear</a>' in page


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("started:<2h", "started in the last 2 h"),
        ("finished:>90m", "finished more than 1 h 30 m ago"),
        ("duration:>=5m", "took at least 5 m"),
        ("duration:1m..2h", "took from 1 m to 2 h"),
        ("-status:open,complete,errored", "not: status is open, complete or errored"),
        ("status:closed", "status is closed"),
    ],
)
def test_a_chip_is_short(operator: Client, text: str, words: str) -> None:
    assert chips(page_of(operator, query=text)) == [(words, "")]


def test_chips_keep_order_and_columns(operator: Client) -> None:
    page = page_of(operator, query="tag:eu id:a", sort="started", columns="params.a")
    assert 'href="/instances/?query=id:a&amp;sort=started&amp;columns=params.a"' in page
    assert 'href="/instances/?sort=started&amp;columns=params.a">Clear</a>' in page
    assert '<input type="hidden" name="sort" value="started">' in page
    assert '<input type="hidden" name="columns" value="params.a">' in page


def test_a_wrong_term_is_named_and_nothing_is_searched(operator: Client) -> None:
    factories.instance()
    page = page_of(operator, query="workflow:orders status:nope size:1")
    assert "Not searched: fix 2 terms" in page
    assert "There is no status &quot;nope&quot;." in page
    assert "There is no field &quot;size&quot;." in page
    assert 'href="/instances/?query=workflow:orders+size:1">Remove it</a>' in page
    assert [kind.strip() for kind, _, _ in CHIP.findall(page)] == ["", "wrong s-errored", "wrong s-errored"]
    assert '<td class="id">' not in page
    assert 'aria-invalid="true"' in page
    assert "Not searched: fix 1 term<" in page_of(operator, query="status:nope")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"workflow": "orders", "status": "errored", "q": "a-1"}, "workflow:orders status:errored id:a-1"),
        ({"query": "tag:eu", "status": "open"}, "tag:eu status:open"),
        ({"workflow": "", "status": "", "q": " "}, ""),
        ({"q": "a b"}, 'id:"a b"'),
        ({"q": 'a"\\'}, 'id:"a\\"\\\\"'),
        ({"status": "no,pe"}, 'status:"no,pe"'),
        ({"tag": "eu", "by": "ana b"}, 'tag:eu by:"ana b"'),
        ({"since": "1h"}, "started:<1h"),
        ({"since": "2026-11-01"}, "started:>=2026-11-01"),
        ({"finished": "<2h", "error": "Timeout"}, "error:Timeout finished:<2h"),
    ],
)
def test_parameters_named_like_fields_become_terms(
    operator: Client, given: dict[str, str], text: str
) -> None:
    page = page_of(operator, **given)
    assert typed(page) == text
    assert "Ignored" not in page


@pytest.mark.parametrize("given", [{"status": "nope"}, {"since": "soon"}, {"started": "soon"}])
def test_an_invalid_value_of_such_a_parameter_is_wrong_and_not_ignored(
    operator: Client, given: dict[str, str]
) -> None:
    factories.instance()
    page = page_of(operator, **given)
    assert "Not searched: fix 1 term" in page
    assert '<td class="id">' not in page


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("?until=1h&region=eu&workflow=orders", ["until=1h", "region=eu"]),
        ("?status=errored&status=running", ["status=errored"]),
        ("?query=tag:eu&query=tag:us", ["query=tag:eu"]),
        ("?sort=password&before=x&after=-1", ["sort=password", "before=x", "after=-1"]),
        ("?tax=" + "x" * 500, ["tax=" + "x" * 75 + "…"]),
        ("?query=status:errored&sort=started&columns=params.a", []),
        ("?status=&workflow=&q=&sort=&columns=", []),
    ],
)
def test_what_has_no_effect_is_named(operator: Client, query: str, named: list[str]) -> None:
    page = operator.get(f"/instances/{query}").content.decode()
    assert re.findall(r"<code><bdi>([^<]*)</bdi></code>", page) == named
    said = f"Ignored {'this unknown filter' if len(named) == 1 else 'these unknown filters'}:"
    assert (said in page) == bool(named)


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x onerror=alert(1)>",
        '"><script>alert(1)</script>',
        "error:<b>bold</b>",
        "status:<i>",
        "params.a=<u>",
        "\0",
        "workflow:\0",
        'error:"\0"',
        "params.a=\x1b",
        "\u202e txt.exe \u2066",
        "اردو",
        "params.مرحبا=1",
        "{{ 7|add:7 }} {% url 'x' %}",
        "%00%ff",
        "'; DROP TABLE engine_instance; --",
        "a" * LONGEST,
        "tag:x " * 500,
        '"',
        "-",
        ":",
        "status:",
        "id:" + '"' * 99,
        "🛒" * 300,
        "started:<99999999999999999999d",
        "started:0000-99-99",
        "duration:>1e999",
        "params." + "a." * 200 + "b=1",
        "params.a=" + "9" * 400,
    ],
)
def test_no_text_breaks_the_page_or_becomes_markup(operator: Client, text: str) -> None:
    factories.instance(params={"a": 1})
    for given in (
        {"query": text},
        {"q": text},
        {"workflow": text},
        {"columns": text},
        {"sort": text},
        {text: text},
    ):
        page = page_of(operator, **given)
        for tag in ("<img", "<script>", "<b>", "<u>", "<i>"):
            assert tag not in page.replace("<i></i>", "")


def test_a_megabyte_is_refused_in_a_sentence(operator: Client) -> None:
    page = page_of(operator, query="x " * 500_000)
    assert f"A search may have up to {LONGEST:,} characters" in page
    assert len(page) < 60_000


def test_text_that_turns_its_surroundings_is_isolated(operator: Client) -> None:
    page = page_of(operator, query="error:\u202eexe.txt")
    assert all(words.startswith("\u2068") for words, _ in chips(page))


def choices(page: str) -> dict[str, str]:
    menu = re.search(r'<details class="menu">.*?</details>', page, re.DOTALL)
    assert menu
    found = re.findall(r'<li><a href="([^"]*)"( aria-current="true")?>([^<]*)</a>', menu[0])
    return {name: html.unescape(address) for address, _, name in found}


def test_a_time_window_is_a_term(operator: Client) -> None:
    page = page_of(operator, query="tag:eu started:<24h", sort="started")
    assert choices(page) == {
        "All time": "/instances/?query=tag:eu&sort=started",
        "Last hour": "/instances/?query=tag:eu+started:%3C1h&sort=started",
        "Last 24 h": "/instances/?query=tag:eu+started:%3C24h&sort=started",
        "Last 7 days": "/instances/?query=tag:eu+started:%3C7d&sort=started",
        "Last 30 days": "/instances/?query=tag:eu+started:%3C30d&sort=started",
    }
    assert re.search(r'<a href="[^"]*" aria-current="true">Last 24 h</a>', page)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "All time"),
        ("-started:<1h", "All time"),
        ("started:<1d", "Last 24 h"),
        ("started:<2h", "Last 2 h"),
        ("started:>2h", "Other times"),
        ("started:2026-11-01", "Other times"),
        ("started:<2h started:>1h", "Other times"),
    ],
)
def test_the_menu_names_the_window_of_the_search(operator: Client, text: str, name: str) -> None:
    page = page_of(operator, query=text)
    summary = re.search(r'<summary class="button">(.*?)</summary>', page, re.DOTALL)
    assert summary
    assert name in summary[1]


def test_no_match_offers_to_drop_terms_and_to_widen(operator: Client) -> None:
    factories.instance(id="o-1")
    page = page_of(operator, query="status:errored started:<24h")
    assert "No instances match" in page
    assert 'href="/instances/?query=started:%3C24h" title="Remove this term"' in page
    assert 'href="/instances/?query=status:errored+started:%3C7d">Widen to 7 days</a>' in page
    assert ">Widen to all time</a>" in page_of(operator, query="status:errored started:<30d")
    assert "Widen to" not in page_of(operator, query="status:errored")


def test_links_elsewhere_lead_to_searches(operator: Client) -> None:
    factories.instance("errored")
    for where in ("/workflows/", "/workflows/orders/"):
        assert (
            'href="/instances/?query=workflow:orders+status:errored"' in operator.get(where).content.decode()
        )


def searched_words(page: str) -> str:
    match = re.search(r'<p class="searched">\s*(.*?)\s*</p>', page, re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", "", match[1]).split()) if match else ""


def link(page: str, words: str) -> str:
    match = re.search(rf'<a [^>]*href="([^"]*)"[^>]*>{words}', page)
    assert match, words
    return html.unescape(match[1])


def test_a_search_that_has_looked_at_all_says_so(operator: Client) -> None:
    for _ in range(3):
        factories.instance(params={"a": 1})
    assert searched_words(page_of(operator, query="params.a=1")) == "Searched all instances"
    assert searched_words(page_of(operator)) == ""


def test_a_search_that_has_looked_at_a_part_names_it_and_goes_on(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "FIRST", 2)
    monkeypatch.setattr(windows, "LONGEST_S", -1)
    oldest = factories.instance(params={"a": 1})
    for _ in range(3):
        factories.instance(params={"a": 2})
    page = page_of(operator, query="params.a=1", columns="params.a")
    assert "<strong>No match yet</strong>\n  <span>Searched the newest 2 of 4.</span>" in page
    assert "No instances match" not in page
    found = operator.get("/instances/?query=params.a=2").content.decode()
    assert searched_words(found) == "Searched the newest 2 of 4 · Go on"
    page = operator.get(link(page, "Go on")).content.decode()
    assert oldest.id in page
    assert '<td class="added atom">1</td>' in page


def test_what_has_no_more_matches_leads_back_to_the_first_page(operator: Client) -> None:
    first = factories.instance()
    page = page_of(operator, query="status:queued", before=str(first.key))
    assert "No more instances match" in page
    assert link(page, "Show the first page") == "/instances/?query=status:queued"


def test_an_order_is_of_all_or_says_of_how_many(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    short = factories.instance("complete", finished_at=factories.ago(seconds=110))
    long = factories.instance("complete", finished_at=factories.ago(seconds=5))
    factories.instance()
    page = page_of(operator, sort="duration", query="status:complete")
    assert re.findall(r'<td class="id"><a [^>]*>([^<]+)</a>', page) == [short.id, long.id]
    assert re.search(r'<th scope="col"\s+aria-sort="ascending">\s*<a href="[^"]*sort=-duration"', page)
    page = page_of(operator, sort="-finished")
    assert re.findall(r'<td class="id"><a [^>]*>([^<]+)</a>', page) == [long.id, short.id]
    assert "top=" not in page  # new instances are announced where the newest come first


def test_a_search_that_takes_too_long_offers_to_narrow_it(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*args: object, **given: object) -> None:
        raise OperationalError("canceling statement due to statement timeout") from QueryCanceled()

    factories.instance()
    monkeypatch.setattr(searching, "search", slow)
    page = page_of(operator, query="error:x", sort="started")
    _, told, page = page.partition("This search took more than 3 s")
    assert told
    assert link(page, "Last 24 h") == "/instances/?query=error:x+started:%3C24h&sort=started"
    assert link(page, "Only orders") == "/instances/?query=error:x+workflow:orders&sort=started"
    assert not re.search(r"<a [^>]*>\s*Only ", page_of(operator, query="error:x workflow:orders"))


def test_counts_that_take_too_long_are_left_out(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*args: object, **given: object) -> None:
        raise OperationalError("canceling statement due to statement timeout") from QueryCanceled()

    made = factories.instance()
    monkeypatch.setattr(counting, "count_by_status", slow)
    page = page_of(operator, query=f"id:{made.id}")
    assert made.id in page
    assert 'class="strip uncounted"' in page
