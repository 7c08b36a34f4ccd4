"""Searches: what their text means, and what is said of a term that means nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.values.query import terms
from engine.values.query.parsing import LONGEST, MOST_TERMS, parse
from engine.values.query.terms import AtPath, Bound, Literal, Moments, Operator, Pattern, Took
from engine.values.query.wording import in_words
from engine.values.shown import CLOSED, OPEN

DAY = datetime(2026, 11, 1, tzinfo=UTC)
HOURS = timedelta(hours=2)


def one(text: str) -> terms.Condition:
    found = parse(text)
    assert not found.problems
    (term,) = found.terms
    return term.condition


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("workflow:orders", terms.Names("workflow", (Pattern("orders"),))),
        ("Workflow:orders,refund*", terms.Names("workflow", (Pattern("orders"), Pattern("refund", True)))),
        ('step:"charge card"', terms.Names("step", (Pattern("charge card"),))),
        ('tag:"a*"', terms.Names("tag", (Pattern("a*"),))),
        ("by:ana", terms.Names("by", (Pattern("ana"),))),
        ("system:yes", terms.System(is_system=True)),
        ("system:No", terms.System(is_system=False)),
        ("status:errored", terms.Statuses(("errored",))),
        ("status:ERRORED,paused", terms.Statuses(("paused", "errored"))),
        ("status:open", terms.Statuses(OPEN)),
        ("status:finished", terms.Statuses(CLOSED)),
        ("status:waiting_for_pause", terms.Statuses(("running",))),
        ("id:order-47", terms.Ids(("order-47",))),
        ("id:order-47*", terms.Ids(("order-47",))),
        ('error:"timed out",Declined', terms.Errors(("timed out", "Declined"))),
        ("error-group:9F3C1A5B7D2E4F60", terms.FailedAlike(("9f3c1a5b7d2e4f60",))),
        ("order-47", terms.Free("order-47")),
        ("order-4*", terms.Free("order-4")),
        ('"timed out"', terms.Free("timed out")),
        (r'"say \"no\""', terms.Free('say "no"')),
        ("a,b", terms.Free("a,b")),
        ("https://shop.example/", terms.Free("https://shop.example/")),
        ("started:<2h", Moments("started", Bound(HOURS, False), None)),
        ("started:>=2h", Moments("started", None, Bound(HOURS, True))),
        ("started:<7200s", Moments("started", Bound(HOURS, False), None)),
        ('started:<"7200 s"', Moments("started", Bound(HOURS, False), None)),
        ("finished:2026-11-01", Moments("finished", Bound(DAY, True), Bound(DAY + timedelta(1), False))),
        ("started:>2026-11-01", Moments("started", Bound(DAY + timedelta(1), True), None)),
        ("started:>=2026-11-01", Moments("started", Bound(DAY, True), None)),
        ("started:<2026-11-01", Moments("started", None, Bound(DAY, False))),
        ("started:<=2026-11-01", Moments("started", None, Bound(DAY + timedelta(1), False))),
        (
            "started:2026-11-01..2026-11-03",
            Moments("started", Bound(DAY, True), Bound(DAY + timedelta(3), False)),
        ),
        ("started:>2026-11-01T00:00Z", Moments("started", Bound(DAY, False), None)),
        ("started:>2026-11-01T02:00+02:00", Moments("started", Bound(DAY, False), None)),
        ('started:<="2026-11-01 00:00"', Moments("started", None, Bound(DAY, True))),
        ("duration:>2h", Took(Bound(HOURS, False), None)),
        ("duration:<=2h", Took(None, Bound(HOURS, True))),
        ("duration:1h..2h", Took(Bound(timedelta(hours=1), True), Bound(HOURS, True))),
        (
            "params.customer.id=4711",
            AtPath(("params", "customer", "id"), Operator.IS, (Literal("4711", Decimal(4711)),)),
        ),
        ("params.region:eu", AtPath(("params", "region"), Operator.IS, (Literal("eu"),))),
        (
            'params.region="eu",us*',
            AtPath(
                ("params", "region"),
                Operator.IS,
                (Literal("eu", is_quoted=True), Literal("us", is_prefix=True)),
            ),
        ),
        ('params.n="5"', AtPath(("params", "n"), Operator.IS, (Literal("5", is_quoted=True),))),
        ("params.region!=eu", AtPath(("params", "region"), Operator.IS_NOT, (Literal("eu"),))),
        ("output.total:>100", AtPath(("output", "total"), Operator.MORE, (Literal("100", Decimal(100)),))),
        (
            "output.total<=-1.5e3",
            AtPath(("output", "total"), Operator.AT_MOST, (Literal("-1.5e3", Decimal("-1.5e3")),)),
        ),
        ("params.items.0.sku:*", AtPath(("params", "items", "0", "sku"), Operator.EXISTS, ())),
    ],
)
def test_a_term_means(text: str, condition: terms.Condition) -> None:
    assert one(text) == condition


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("staus:open", 'There is no field "staus". Did you mean "status"?'),
        ("customer.id=4", 'There is no field "customer.id". Write params.customer.id or output.customer.id'),
        ("status:eror", 'There is no status "eror". Did you mean "errored"?'),
        ("status!=open", "Write -status:errored to exclude."),
        ("error-group:9f3c", '"9f3c" is not the fingerprint of a group of errors: it has 16 digits'),
        ("error-group:>9f3c1a5b7d2e4f60", '"error-group" cannot be compared with >.'),
        ("system:maybe", "It is yes or no. Write it like system:yes."),
        ("system:>yes", '"system" cannot be compared with >.'),
        ("workflow:", "A value is missing. Write it like workflow:orders."),
        ("workflow:a,,b", "A value is missing."),
        ("workflow:>3", '"workflow" cannot be compared with >.'),
        ("params=1", "A path is missing."),
        ("params..a=1", "A path is missing."),
        ("params.a=", "A value is missing. Write it like params.a=value."),
        ("params.a>1,2", "Only one value can be compared."),
        ("params.a>b*", "A * cannot be compared."),
        ("params." + "a." * 10 + "a=1", "A path may have up to 10 parts"),
        ("step:a*b", "A * may only stand at the end."),
        ("step:*", "Add text before the *, as in order-*."),
        ("started:2h", "Write started:<2h for the last 2h, or started:>2h for more than 2h ago."),
        ("started:yesterday", '"yesterday" is not a range of time.'),
        ("started:2026-02-30", '"2026-02-30" is not a date that exists.'),
        ("started:2026-11-03..2026-11-01", "2026-11-03 is after 2026-11-01."),
        ("started:!=2026-11-03", "is not a range of time"),
        ("duration:5m", "Write duration:>5m, duration:<1h or duration:1m..5m."),
        ("duration:5m..1m", "5m is longer than 1m."),
        ("duration:>400d", "is not a range of durations"),
        ('"no end', "A quote is not closed."),
        ('""', "Write a text to search for"),
        ("-", '"-" excludes what follows it.'),
        ("a\x00b", "The character U+0000 cannot be searched for."),
        ("a\ud800", "The character U+D800 cannot be searched for."),
        ("id:" + "x" * 201, "A value may have up to 200 characters; this one has 201."),
        ("x" * 201, "A text to search for may have up to 200 characters."),
        ("tag:" + ",".join("abcdefghijklmnopqrstu"), "A term may have up to 20 values; this one has 21."),
    ],
)
def test_a_wrong_term_is_explained(text: str, said: str) -> None:
    found = parse(text)
    (problem,) = found.problems
    assert said in problem.message
    assert not found.terms
    assert found.without(problem) == ""


def test_a_search_has_terms_in_any_order_and_some_may_be_excluded() -> None:
    found = parse('  workflow:orders  -status:complete "timed out"')
    assert [(term.field, term.is_negated) for term in found.terms] == [
        ("workflow", False),
        ("status", True),
        ("text", False),
    ]
    assert [found.text[term.start : term.end] for term in found.terms] == [term.text for term in found.terms]


def test_a_term_can_be_taken_out_or_replaced() -> None:
    found = parse('tag:"a  b" status:open  -status:paused oops:1 x')
    assert found.without(found.terms[1]) == 'tag:"a  b" -status:paused oops:1 x'
    assert found.replaced("status", "status:errored") == 'tag:"a  b" -status:paused x oops:1 status:errored'
    assert found.replaced("text") == 'tag:"a  b" status:open -status:paused oops:1'


def test_a_search_that_is_too_long_is_refused_whole() -> None:
    found = parse("x" * (LONGEST + 1))
    assert found.problems[0].message == "A search may have up to 2,000 characters; this one has 2,001."
    many = parse(" ".join(["x"] * (MOST_TERMS + 2)))
    assert len(many.terms) == MOST_TERMS
    assert [problem.message for problem in many.problems] == [
        "A search may have up to 20 terms; this one has 22."
    ] * 2


def test_a_blank_search_is_empty() -> None:
    assert parse(" \t\n ").is_empty
    assert not parse("x").is_empty
    assert not parse("oops:1").is_empty


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("workflow:orders,refund*", "the workflow is orders or refund…"),
        ("-status:paused,errored,queued", "not: the status is queued, paused or errored"),
        ("id:order-4", "the ID begins with “order-4”"),
        ("error:Timeout", "its error contains “Timeout”"),
        ("error-group:9f3c1a5b7d2e4f60", "its latest failure belongs to the error group 9f3c1a5b7d2e4f60"),
        ("system:yes", "it is of one of Reprise’s own workflows"),
        ("-system:yes", "not: it is of one of Reprise’s own workflows"),
        ("system:no", "it is of no workflow of Reprise itself"),
        ("order-4", "the ID begins with “order-4” or, if none does, its error contains it"),
        ("started:<2h", "it started in the last 2 h 00 m"),
        ("started:>2h", "it started more than 2 h 00 m ago"),
        ("started:2026-11-01", "it started from 2026-11-01 UTC to before 2026-11-02 UTC"),
        ("finished:>2026-11-01T12:30Z", "it finished after 2026-11-01 12:30:00 UTC"),
        ("duration:1m..5m", "it took from 1 m 00 s to 5 m 00 s"),
        ("duration:>=5m", "it took at least 5 m 00 s"),
        ("params.a=1,x*", "params.a is 1 or something that begins with “x”"),
        ('params.a!="b"', "params.a is something other than “b”"),
        ("output.n<=3", "output.n is at most 3"),
        ("params.a:*", "params.a exists"),
    ],
)
def test_a_term_in_words(text: str, said: str) -> None:
    assert in_words(parse(text).terms[0]) == said


_PIECES = [
    "status:",
    "params.a",
    "output.",
    "started:",
    "duration:",
    "-",
    '"',
    "\\",
    ",",
    "*",
    "..",
    "<",
    ">=",
    "!=",
    "2h",
]


@given(st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=5)), max_size=12).map("".join))
def test_whatever_is_written_is_read_and_every_part_of_it_has_its_place(text: str) -> None:
    found = parse(text)
    parts = sorted((*found.terms, *found.problems), key=lambda part: part.start)
    assert [text[part.start : part.end] for part in parts] == [part.text for part in parts]
    covered = {place for part in parts for place in range(part.start, part.end)}
    assert all(letter.isspace() for place, letter in enumerate(text) if place not in covered)
    for term in found.terms:
        assert in_words(term)
        assert parse(term.text).terms[0].condition == term.condition
