"""Read the body of a verified delivery."""

from __future__ import annotations

from urllib.parse import parse_qsl

from engine.values.json_type import JSON
from engine.values.serialization import read_json
from studio.webhooks.incoming import Incoming
from studio.webhooks.refusals import DeliveryError

MOST_BYTES = 1024 * 1024
MOST_FIELDS = 100


def read(incoming: Incoming) -> JSON:
    """Return the payload. Raises DeliveryError or InvalidJSON.

    A form is an object of texts. If it has a field `payload`, as forms of GitHub and interactions of Slack do, that is
    the payload, as JSON.
    """
    if not incoming.is_form:
        return read_json(incoming.body, limit=MOST_BYTES, what="payload")
    fields = _fields(incoming.body)
    if "payload" in fields:
        return read_json(fields["payload"], limit=MOST_BYTES, what="payload")
    return {**fields}


def _fields(body: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=MOST_FIELDS,
        )
    except ValueError:
        detail = f"The form cannot be read. It has {MOST_FIELDS} fields at most, in UTF-8."
        raise DeliveryError(400, "invalid_form", detail) from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise DeliveryError(422, "duplicate_key", f"The field {name[:80]} stands in the form twice.")
        if "\0" in name or "\0" in value:
            raise DeliveryError(422, "nul_character", "The form contains a NUL character.")
        found[name] = value
    return found
