"""Answer a repeated request as the first one: the header Idempotency-Key, as Stripe's API has it.

The key, what the request does, and its answer are written in one transaction. A process that dies before the commit
leaves nothing, so that the repeated request does everything; after it, the repeated request gets the recorded answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any, Concatenate, ParamSpec

from django.db import connection, transaction
from django.http import HttpResponse
from django.utils.crypto import salted_hmac

from engine.values.errors import RepriseError
from studio.api.auth import ApiRequest, principal_key
from studio.api.body import body_of
from studio.api.problems import ProblemError, of_engine, problem
from studio.models import IdempotencyKey
from studio.models.expired import KEPT

P = ParamSpec("P")
Act = Callable[Concatenate[ApiRequest, P], HttpResponse]

HEADER = "Idempotency-Key"
LONGEST = 255
SWEPT = 20  # old rows that each request deletes
REPLAYED = "Idempotency-Replayed"
KEPT_HEADERS = ("Location", "ETag")

# Waits for a transaction that has inserted the same key. A key that is older than a day starts anew; a few others of
# that age are deleted.
_CLAIM = """
WITH swept AS (
    DELETE FROM studio_idempotencykey WHERE key IN (
           SELECT key FROM studio_idempotencykey
            WHERE created_at < clock_timestamp() - %(kept)s::interval
              AND (principal, name) <> (%(principal)s, %(name)s)
            LIMIT %(most)s FOR UPDATE SKIP LOCKED)
)
INSERT INTO studio_idempotencykey AS held (principal, name, digest, headers, body, created_at)
VALUES (%(principal)s, %(name)s, %(digest)s, '{}', '', clock_timestamp())
    ON CONFLICT (principal, name) DO UPDATE
   SET digest = excluded.digest, status = NULL, headers = '{}', body = '', created_at = excluded.created_at
 WHERE held.created_at < clock_timestamp() - %(kept)s::interval
RETURNING key
"""


def idempotent(act: Act[P]) -> Act[P]:
    """Let an operation keep to the header. Conflicts are answers, too, and are repeated.

    Other refusals are not: what does not exist or is not valid today may be tomorrow, after a deploy for example.
    """

    @wraps(act)
    def answered(request: ApiRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        name = _name_of(request)
        if name is None:
            return act(request, *args, **kwargs)
        with transaction.atomic():
            row = _claimed(request, name)
            if row.status is not None:
                return _replayed(row)
            response = _done(lambda: act(request, *args, **kwargs))
            _keep(row, response)
        return response

    # Ninja reads the types of the operation's arguments, and would look their names up here.
    answered.__signature__ = inspect.signature(act, eval_str=True)  # type: ignore[attr-defined]
    return answered


def _name_of(request: ApiRequest) -> str | None:
    given = request.headers.get(HEADER)
    if given is None:
        return None
    name = given.strip()
    if "," in name:  # servers join headers of the same name
        raise ProblemError(400, "invalid_idempotency_key", f"Send one {HEADER}, without commas.")
    if not name or len(name) > LONGEST or not (name.isascii() and name.isprintable()):
        rule = f"{HEADER} has 1 to {LONGEST} printable ASCII characters."
        raise ProblemError(422, "invalid_idempotency_key", rule)
    return name


def _claimed(request: ApiRequest, name: str) -> IdempotencyKey:
    """Return the row of a key: with an answer if there is one, or else locked until the transaction ends."""
    holder = principal_key(request.auth)
    digest = _digest(request)
    values: dict[str, str | int] = {"principal": holder, "name": name, "digest": digest, "kept": KEPT}
    values["most"] = SWEPT
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, values)
        claimed = cursor.fetchone()
    if claimed is not None:
        return IdempotencyKey(key=claimed[0])
    row = IdempotencyKey.objects.get(principal=holder, name=name)
    if row.digest != digest:
        detail = f'The key "{name}" was sent with another request. Use a new key for another request.'
        raise ProblemError(422, "idempotency_key_reused", detail)
    return row


def _digest(request: ApiRequest) -> str:
    # With a key: nobody who reads the table can try out which secret was in a body.
    address = f"{request.method} {request.get_full_path()}\n".encode(errors="surrogateescape")
    return salted_hmac("studio.idempotency", address + body_of(request), algorithm="sha256").hexdigest()


def _done(act: Callable[[], HttpResponse]) -> HttpResponse:
    """Return the answer; of a refusal, nothing stays written."""
    try:
        with transaction.atomic():
            return act()
    except (RepriseError, ProblemError) as error:
        refusal = of_engine(error) if isinstance(error, RepriseError) else error
        if refusal.status != HTTPStatus.CONFLICT:
            raise
        return problem(refusal)


def _keep(row: IdempotencyKey, response: HttpResponse) -> None:
    headers = {name: response[name] for name in KEPT_HEADERS if name in response}
    IdempotencyKey.objects.filter(key=row.key).update(
        status=response.status_code,
        headers={**headers, "Content-Type": response["Content-Type"]},
        body=response.content.decode(),
    )


def _replayed(row: IdempotencyKey) -> HttpResponse:
    headers: dict[str, Any] = {**row.headers, REPLAYED: "true"}
    kind = headers.pop("Content-Type")
    return HttpResponse(row.body, kind, row.status, headers=headers)
