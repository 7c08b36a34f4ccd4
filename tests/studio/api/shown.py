"""Answers as the document shows them: what differs from run to run is replaced."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Any

from tests.studio.api.shop import NOW

_TIME = re.compile(r'"(\d{4}-\d\d-\d\dT[\d:.]+\+00:00)"')
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CHILD = re.compile(r"-[0-9a-f]{32}")  # ids of children depend on the secret key
_CURSOR = re.compile(r'("next_cursor": )"\d+"')
_STORY = timedelta(days=60)  # times of the shop; others are those of the test


def shown(text: str) -> Any:
    """Return the document of an answer."""
    text = _TIME.sub(_moment, text)
    text = _UUID.sub("019ab4f0-5b1e-7c60-9e3f-5d2a8f0c7b11", text)
    text = _CHILD.sub("-2d67f7640b59377adf265ab5608db0d8", text)
    return json.loads(_CURSOR.sub(r'\1"1041"', text))


def _moment(found: re.Match[str]) -> str:
    """Return a time of the story as it is: only the audit trail has the time of the machine."""
    return found[0] if _is_of_story(datetime.fromisoformat(found[1])) else f'"{NOW.isoformat()}"'


def _is_of_story(moment: datetime) -> bool:
    return moment.microsecond == 0 and abs(moment - NOW) < _STORY
