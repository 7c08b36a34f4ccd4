"""Decide who sees the details of `/readyz`: callers from listed addresses, and holders of a token for all workflows.

A token changes the status of no answer: a probe must not fail because its token has expired. What is wrong with a
token is in the header WWW-Authenticate, which RFC 9110 (11.6.1) allows in any answer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.http import HttpRequest

from studio.access.credentials import bearer
from studio.access.permissions import sees_health
from studio.api import project_auth
from studio.api.auth import REALM, authenticate
from studio.api.problems import ProblemError

log = logging.getLogger("studio")

CHALLENGE = "WWW-Authenticate"


@dataclass(frozen=True, slots=True)
class Audience:
    """Whether a caller sees the details, and headers of the answer."""

    sees_details: bool
    headers: Mapping[str, str] = field(default_factory=dict)


EVERYBODY = Audience(False)
LISTED = Audience(True)
ELSEWHERE = Audience(False, {CHALLENGE: f'{REALM}, error="insufficient_scope"'})


def names_sender(authorization: str) -> bool:
    """Tell whether this value of the header Authorization may be that of a program that the API knows."""
    return bool(bearer(authorization) or (authorization and project_auth.is_configured()))


def audience_of(request: HttpRequest) -> Audience:
    """Return what the sender of a request sees. It counts as a request to the API. Raises nothing."""
    try:
        holder = authenticate(request)
    except ProblemError as error:
        return Audience(False, {name: value for name, value in error.headers.items() if name == CHALLENGE})
    except Exception:
        # The project's own authentication, or a database that has just gone: the probe is answered all the same.
        log.exception("Cannot tell who asks for the details of /readyz")
        return EVERYBODY
    return LISTED if sees_health(holder) else ELSEWHERE
