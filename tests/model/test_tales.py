from __future__ import annotations

import pytest

from tests.model.machine import Protocol
from tests.model.tales import TALES, Teller


@pytest.mark.parametrize("name", TALES)
def test_every_promise_is_kept_when(protocol: type[Protocol], name: str) -> None:
    teller = Teller(protocol)
    try:
        TALES[name](teller)
        teller.end()
    except BaseException:
        teller.stop()
        raise
