"""Groups of failures: what workers write, what is read of it, what people decide."""

from __future__ import annotations

import pytest

from engine import FailureNotFoundError, failures

pytestmark = pytest.mark.django_db(transaction=True)


def test_without_failures_there_is_nothing_to_see() -> None:
    assert failures.groups() == failures.Groups([], None)
    assert failures.count_open() == 0
    assert failures.kin("0123456789abcdef") == []
    assert failures.sample_trace(["0123456789abcdef"]) is None
    assert failures.instances(["0123456789abcdef"]) == failures.FailedInstances([], None, 0, 0, 0)
    for act in (failures.group, failures.resolve, failures.reopen):
        with pytest.raises(FailureNotFoundError):
            act("0123456789abcdef")
