"""Names, ids, and the identities made from them."""

import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from engine.values import identity
from engine.values.errors import InvalidNameError
from engine.values.identity import (
    Counter,
    StepIdentity,
    check_event_type,
    check_instance_id,
    check_step_name,
    check_workflow_name,
    fingerprint,
    idempotency_key,
    new_instance_id,
    seeded_random,
    seeded_uuid4,
)


@pytest.mark.parametrize(
    "good", ["_ok", "9ok", "0", "a", "A-b_c", "x" * 100, "75c77473-38b2-4a03-916d-6202d609a0b2"]
)
def test_a_good_instance_id(good):
    """CF-79."""
    assert check_instance_id(good) == good


@pytest.mark.parametrize(
    "bad",
    [
        "", "-x", "a b", "é", "a\n", "\na", "x" * 101, "../../x", "a/b", "%00", "a\x00", "a\u202eb", "Ⓐ", "a.b",
        "bad:id", "{a}", "<script>", "😀", "a ", None, 7, b"a", ["a"],
    ],
)  # fmt: skip
def test_a_bad_instance_id(bad):
    """CF-79, LC-44."""
    with pytest.raises(InvalidNameError, match=r"cannot be an instance's id\. It needs 1 to 100 characters"):
        check_instance_id(bad)


def test_a_workflows_name_has_64_characters_at_most():
    assert check_workflow_name("w" * 64) == "w" * 64
    for bad in ["w" * 65, "", "a.b", "-a", "größe", "a\n", None]:
        with pytest.raises(
            InvalidNameError, match=r"cannot be a workflow's name\. It needs 1 to 64 characters"
        ):
            check_workflow_name(bad)


@pytest.mark.parametrize("good", ["deploy:eu", "Größe 😀", "a" * 256, "a/b.c", "step \u202e", "reprise"])
def test_a_good_step_name(good):
    assert check_step_name(good) == good


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        ("a" * 257, "It needs 1 to 256 characters, not all of them blank; it has 257."),
        ("", "It needs 1 to 256 characters, not all of them blank; it has 0."),
        (" ", "It needs 1 to 256 characters, not all of them blank; it has 1."),
        ("a\nb", "It must not contain control characters or lone surrogates."),
        ("a\x00", "It must not contain control characters or lone surrogates."),
        ("a\x7f", "It must not contain control characters or lone surrogates."),
        ("a\x85", "It must not contain control characters or lone surrogates."),
        ("a\ud800", "It must not contain control characters or lone surrogates."),
        ("reprise:spawn:x", 'The prefix "reprise:" is reserved for the engine.'),
        (None, "It must be a string."),
        (5, "It must be a string."),
    ],
)
def test_a_bad_step_name(bad, rule):
    """LC-13, LC-22."""
    with pytest.raises(InvalidNameError) as refused:
        check_step_name(bad)
    assert (refused.value.what, refused.value.rule) == ("a step's name", rule)


def test_an_event_type_may_hold_dots_but_not_101_characters():
    """CF-58, with the contract's dots."""
    assert check_event_type("order.approved") == "order.approved"
    assert check_event_type("t" * 100) == "t" * 100
    for bad in ["t" * 101, "", "a\nb", "a\x00", None]:
        with pytest.raises(InvalidNameError, match="cannot be an event's type"):
            check_event_type(bad)


def test_occurrences_are_counted_by_parent_kind_and_name():
    """CF-05, KC-02: kinds never share a key, nor do two parents."""
    counter = Counter()
    taken = [counter.take("do", "a"), counter.take("sleep", "a"), counter.take("do", "a", parent=3)]
    taken += [counter.take("do", "a"), counter.take("do", "a", parent=3), counter.take("do", "b")]
    assert taken == [
        StepIdentity(0, "do", "a", 1),
        StepIdentity(0, "sleep", "a", 1),
        StepIdentity(3, "do", "a", 1),
        StepIdentity(0, "do", "a", 2),
        StepIdentity(3, "do", "a", 2),
        StepIdentity(0, "do", "b", 1),
    ]


def test_once_is_always_the_first_occurrence():
    """KC-01."""
    counter = Counter()
    assert [counter.take("do", "a", once=True).count for _ in range(3)] == [1, 1, 1]
    assert counter.take("do", "a").count == 2
    assert counter.take("do", "a", once=True).count == 1
    assert counter.take("do", "a").count == 3


FIRST = StepIdentity(0, "do", "a", 1)


def key(workflow="w", id="i", generation=1, path=(FIRST,), phase="do"):
    return idempotency_key(workflow, id, generation, path, phase)


def test_an_idempotency_key_is_the_same_in_every_worker():
    """CC-05. The value itself must not change: other systems have stored it."""
    assert key() == "107aac6c08ccd6cbfe26f667559a36c2"
    assert key() == key(path=(StepIdentity(7, "do", "a", 1),)), "a parent's number is no part of it"


def test_every_other_step_generation_and_phase_has_a_key_of_its_own():
    a, b = StepIdentity(0, "do", "a", 1), StepIdentity(1, "do", "b", 1)
    keys = [
        key(), key(workflow="w2"), key(id="i2"), key(generation=2), key(path=(b,)), key(phase="rollback"),
        key(path=(a, b)), key(path=(b, a)), key(path=(a._replace(count=2),)), key(path=(a._replace(kind="map"),)),
        key(workflow="w-i", id="x"), key(workflow="w", id="i-x"), key(path="a"), key(path="b"),
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch(r"[0-9a-f]{32}", one) for one in keys)


def test_a_fingerprint_sees_code_and_not_its_indentation():
    source = "async def run(step):\n    await step.do('a', f)\n"
    indented = "".join(f"    {line}  \n" for line in source.splitlines())
    assert fingerprint(source) == fingerprint(indented)
    assert fingerprint(source) == fingerprint(source.replace("\n", "\r\n") + "\n")
    assert fingerprint(source) != fingerprint(source.replace("'a'", "'b'"))
    assert fingerprint("if a:\n    b()\nc()") != fingerprint("if a:\n    b()\n    c()")


def test_new_ids_are_valid_sorted_and_of_version_7():
    ids = [new_instance_id() for _ in range(2000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    assert {uuid.UUID(one).version for one in ids} == {7}
    assert {uuid.UUID(one).variant for one in ids} == {uuid.RFC_4122}
    assert [check_instance_id(one) for one in ids] == ids


def test_a_new_id_tells_its_time(monkeypatch):
    monkeypatch.setattr(identity, "_last_tick", 0)
    monkeypatch.setattr(identity.time, "time_ns", lambda: 1_700_000_000_123_000_000)
    assert uuid.UUID(new_instance_id()).int >> 80 == 1_700_000_000_123
    assert uuid.UUID(new_instance_id()).int >> 80 == 1_700_000_000_123


def test_ids_made_by_threads_are_unique():
    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(lambda _: new_instance_id(), range(2000)))
    assert len(set(ids)) == 2000


def test_random_and_uuids_are_the_same_on_every_replay():
    """HC-10."""
    first, again = seeded_random("w", "i", 1), seeded_random("w", "i", 1)
    assert isinstance(first, Random)
    assert [first.random() for _ in range(5)] == [again.random() for _ in range(5)]
    assert seeded_random("w", "i", 2).random() != seeded_random("w", "i", 1).random()
    seed = identity.seed("w", "i", 1)
    assert seeded_uuid4(seed, 1) == seeded_uuid4(seed, 1)
    assert seeded_uuid4(seed, 1) != seeded_uuid4(seed, 2)
    assert seeded_uuid4(seed, 1).version == 4


def test_what_is_seeded_is_the_same_in_every_process_and_version():
    """An instance may continue under another Python, years later."""
    assert seeded_random("w", "i", 1).random() == 0.914800724378472
    assert str(seeded_uuid4(identity.seed("w", "i", 1), 1)) == "a64de7a0-c221-49ab-98b0-c7891b23b3c0"
