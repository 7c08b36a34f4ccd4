"""What the document of the API says of it as a whole."""

from __future__ import annotations

ABOUT = """\
Start, watch and steer workflows. What a person can do in the Studio, a program can do here, with the same permissions
and the same audit trail.

* Send a token with each request: `Authorization: Bearer rpr_…`. Cookies are never read.
* Every answer is JSON. A refusal is a problem (RFC 9457): `code` is for programs, `detail` is a sentence for people,
  and `errors` names each wrong field by its path. Addresses that do not exist (404), other methods (405), addresses
  that are too long (414) and errors of the Studio (500) are answered with problems, too.
* Send `Idempotency-Key` with a POST, and repeat the request as often as you like: it has its effect once.
* Lists are cut into pages. Pass `next_cursor` of one page as `cursor` for the next, until it is null.
* `GET /workflows/{name}/instances/{id}/subscribe` streams what an instance records, as server-sent events: the history,
  then what happens, until it has ended. `id` of an event is a cursor, for `Last-Event-ID` or `?cursor=`.
* Times are in UTC, in ISO 8601. Secrets in values are masked.
* Within version 1, keys and operations may be added, and never removed. Ignore keys that you do not know.
"""

TAGS = {
    "Workflows": "Workflows with the schemas of their params, and starting instances of them.",
    "Instances": "Instances: lists, one with everything recorded about it, and deletion.",
    "History": "What an instance has recorded, one kind of thing at a time, in pages.",
    "Steering": "Pause, resume, terminate and restart instances. `If-Match` guards against acting on an old state.",
    "Bulk jobs": "One action on many instances, in the background.",
    "Events": "Events of instances: lists, and sending them.",
    "Requests": "Questions that instances ask people, and the answers.",
    "Errors": "Failures that are alike, in groups: what they have in common, and what people decided about them.",
    "Schedules": "When workflows start by themselves.",
    "Operations": "The holder of the token, the workers and the audit trail.",
}
