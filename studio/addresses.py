"""The address that a request comes from, also through proxies that the settings name."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest

Address = IPv4Address | IPv6Address

UNKNOWN = "unknown"  # a Unix socket has no address
IPV6_PREFIX = 64  # what one customer of a provider has


def address_of(request: HttpRequest) -> str:
    """Return who sent a request, as limits count it: an IPv6 address stands for its network of 64 bits.

    X-Forwarded-For is read from its right end, and only as far as REPRISE_TRUSTED_PROXIES says who wrote it.
    """
    trusted = getattr(settings, "REPRISE_TRUSTED_PROXIES", ())
    return sender(request.META.get("REMOTE_ADDR", ""), request.headers.get("X-Forwarded-For", ""), trusted)


def sender(peer: str, forwarded: str, trusted: Sequence[str]) -> str:
    """Return the first address, from the right, that is not a trusted proxy's. `trusted` are addresses and networks."""
    found = _read(peer)
    for text in reversed(forwarded.split(",")):
        if found is None or not _is_within(found, trusted):
            break
        found = _read(text) or found
    return _counted(found) if found is not None else UNKNOWN


def _read(text: str) -> Address | None:
    try:
        found = ip_address(text.strip().partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _is_within(address: Address, networks: Sequence[str]) -> bool:
    return any(address in ip_network(one, strict=False) for one in networks)


def _counted(address: Address) -> str:
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, IPV6_PREFIX), strict=False))
    return str(address)
