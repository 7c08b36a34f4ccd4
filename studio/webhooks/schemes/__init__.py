"""The ways in which senders sign their deliveries."""

from __future__ import annotations

from collections.abc import Mapping

from studio.webhooks.schemes import github, shared, slack, standard, stripe
from studio.webhooks.schemes.scheme import Scheme

SCHEMES: Mapping[str, Scheme] = {
    one.name: one for one in (standard.STANDARD, github.GITHUB, stripe.STRIPE, slack.SLACK, shared.SHARED)
}
