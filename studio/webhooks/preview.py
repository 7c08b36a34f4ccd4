"""Show what a hook would do with an example, without doing it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from engine.declare.registry import declared_events
from engine.declare.registry import workflows as registry
from engine.steer import launch
from engine.values.errors import InvalidParamsError, RepriseError
from engine.values.identity import check_dedup_key, check_event_type, check_instance_id, check_tags
from engine.values.serialization import InvalidJSON, encode, read_json
from engine.values.serialization.envelope import masked_text
from studio.display.payloads import pretty
from studio.forms.typed_secrets import hidden
from studio.webhooks import mapping
from studio.webhooks.form import Typed
from studio.webhooks.incoming import Headers
from studio.webhooks.mapping import Rules
from studio.webhooks.refusals import DeliveryError
from studio.webhooks.sources import Given


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that a delivery like the example would lead to. `look` is a status, for its color."""

    label: str
    text: str
    look: str = "complete"
    is_code: bool = False


def headers_of(text: str) -> dict[str, str]:
    """Read lines of `Name: value`, ignoring others."""
    pairs = (line.partition(":")[::2] for line in text.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs if name.strip()}


def preview(typed: Typed, rules: Rules) -> list[Line]:
    """Return what a delivery of the example would do; empty without an example."""
    if not typed.example:
        return []
    try:
        payload = read_json(typed.example, what="example")
    except InvalidJSON as error:
        where = f" (line {error.line}, column {error.column})"
        return [Line("Example", f"{error.message}{where}", "errored")]
    headers = Headers(headers_of(typed.example_headers).items())
    try:
        given = Given(payload, headers.some(rules.headers))
        unmet = mapping.unmet(rules, given)
        if unmet:
            return [Line("Ignored", f"This condition does not hold: {unmet}", "queued")]
        return list(_lines(typed, mapping.take(rules, given)))
    except DeliveryError as error:
        return [Line("Refused", error.detail, "errored")]


def _lines(typed: Typed, taken: mapping.Taken) -> Iterator[Line]:
    if typed.starts:
        yield Line(
            "Starts", typed.workflow or "no workflow yet", "complete" if typed.workflow else "retrying"
        )
        if taken.id is None:
            yield Line("Instance ID", "generated for each delivery")
        else:
            yield _checked("Instance ID", taken.id, check_instance_id)
        if taken.tags:
            yield _checked("Tags", ", ".join(taken.tags), lambda _: check_tags(taken.tags))
        yield from _params(typed, taken.payload)
    else:
        yield _checked("Instance", taken.id or "", check_instance_id)
        yield _checked("Event", taken.type or "", check_event_type)
        if taken.dedup is not None:
            yield _checked("Dedup key", taken.dedup, check_dedup_key)
        yield from _payload(taken.type or "", taken.payload)


def _checked(label: str, text: str, check: Callable[[str], object]) -> Line:
    try:
        check(text)
    except RepriseError as error:
        return Line(label, str(error), "errored")
    return Line(label, text, is_code=True)


def _params(typed: Typed, value: Any) -> Iterator[Line]:
    workflow = registry.get(typed.workflow)
    if workflow is None:
        return
    if not workflow.takes_params:
        yield Line("Parameters", "none: this workflow takes no parameters")
        return
    try:
        launch.validate_params(workflow, value)
    except InvalidParamsError as error:
        for one in error.errors:
            yield Line(f"params/{one['path']}".rstrip("/"), one["message"], "errored")
        return
    except RepriseError as error:
        yield Line("Parameters", str(error), "errored")
        return
    yield Line("Parameters", hidden(pretty(value), workflow.params_schema()), is_code=True)


def _payload(type: str, value: Any) -> Iterator[Line]:
    declared = declared_events.get(type)
    try:
        text = encode(value, what="payload") if declared is None else declared.encode(value)
    except InvalidParamsError as error:
        for one in error.errors:
            yield Line(f"payload/{one['path']}".rstrip("/"), one["message"], "errored")
        return
    except RepriseError as error:
        yield Line("Payload", str(error), "errored")
        return
    yield Line("Payload", pretty(json.loads(masked_text(text))), is_code=True)
