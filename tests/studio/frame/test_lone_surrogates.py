"""Text that is not valid Unicode is refused in every form."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from tests.studio import factories
from tests.studio.routes import address, rules

pytestmark = pytest.mark.django_db

# Deliveries of webhooks are no forms.
POSTED = sorted(name for name, rule in rules().items() if "POST" in rule.methods and not rule.is_signed)
FIELDS = (
    "username",
    "password",
    "next",
    "id",
    "tags",
    "params",
    "type",
    "payload",
    "reason",
    "note",
    "comment",
)
# In UTF-7 it is a lone surrogate. Requests for our pages in other encodings stop before Django; a larger site may let
# them in.
BODY = b"".join(
    b"--x\r\nContent-Disposition: form-data; name=%s\r\n\r\n+2AA-\r\n" % name.encode() for name in FIELDS
)
KIND = "multipart/form-data; boundary=x; charset=utf-7"


ROLES = {
    name: ("admin",) for name in POSTED if name == "team-tokens" or name.startswith(("webhook", "worker-"))
}


@pytest.mark.parametrize("name", POSTED)
def test_every_form_refuses_it(client: Client, signed_in: Callable[..., Client], name: str) -> None:
    instance = factories.instance("waiting", workflow="process-order")
    factories.request(instance)
    sender = client if name == "sign-in" else signed_in(*ROLES.get(name, ("operator",)))
    # Not post(): it would write the bytes anew in that encoding.
    answer = sender.generic("POST", address(name, instance), BODY + b"--x--\r\n", KIND)
    assert answer.status_code == 400
    assert instance.refresh().status == "waiting"
