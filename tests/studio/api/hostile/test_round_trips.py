"""Whatever the API accepts is read back equal."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.models import Instance
from engine.values.serialization import read_json
from tests.studio.api.conftest import Program
from tests.studio.api.hostile.values import INSTANCES, as_text

# Everything that JSON can say and a value may hold.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)
# And what it may not.
ODD_TEXT = st.text(st.characters(), max_size=8)
ODD = st.recursive(
    st.sampled_from([float("nan"), float("inf"), 2**63, -(2**64), 10**40]) | ODD_TEXT | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD_TEXT, inner, max_size=3),
    max_leaves=6,
)
FEW = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@FEW
@given(value=VALUES)
def test_whatever_is_accepted_is_read_back_equal(program: Program, value: Any) -> None:
    text = as_text(value)
    answer = program.post(INSTANCES, b'{"params":%s}' % text)
    assert answer.status_code == 201
    made = json.loads(answer.content)["instance"]["id"]
    assert program.get(f"{INSTANCES}/{made}/payloads/params").content == text
    read = json.loads(program.get(f"{INSTANCES}/{made}").content)["instance"]["params"]
    assert as_text(read) == text
    sent = program.post(f"{INSTANCES}/{made}/events", b'{"type":"go","payload":%s}' % text)
    assert sent.status_code == 202
    [event] = json.loads(program.get(f"{INSTANCES}/{made}/events").content)["events"]
    assert as_text(event["payload"]) == text


@FEW
@given(value=ODD, spaces=st.booleans(), is_ascii=st.booleans())
def test_whatever_is_sent_is_stored_or_refused(
    program: Program, value: Any, spaces: bool, is_ascii: bool
) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=1 if spaces else None)
    before = Instance.objects.count()
    answer = program.post(INSTANCES, b'{"params":%s}' % text.encode(errors="surrogatepass"))
    assert answer.status_code in (201, 400)
    assert Instance.objects.count() == before + (answer.status_code == 201)
    if answer.status_code == 201:
        made = json.loads(answer.content)["instance"]["id"]
        stored = program.get(f"{INSTANCES}/{made}/payloads/params").content
        assert read_json(stored) == json.loads(text)
