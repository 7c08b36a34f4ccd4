"""A duration as people type it into a form, such as "30m" or "2 days"."""

from typing import Annotated

from pydantic import AfterValidator

from engine.values.durations import parse_duration


def _is_positive(text: str) -> str:
    if not parse_duration(text):
        raise ValueError("Use a duration longer than zero.")
    return text


Duration = Annotated[str, AfterValidator(_is_positive)]
