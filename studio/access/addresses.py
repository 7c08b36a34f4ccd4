"""Find the address that a request comes from, through trusted proxies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from django.http import HttpRequest

from engine.configuration import setting

Address = IPv4Address | IPv6Address

UNKNOWN = "unknown"  # for a Unix socket
# Headers of proxies; and all that begin with x-forwarded.
FORWARDING = frozenset(
    {
        "cf-connecting-ip",
        "fastly-client-ip",
        "forwarded",
        "true-client-ip",
        "via",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-envoy-external-address",
        "x-original-forwarded-for",
        "x-real-ip",
    }
)
IPV6_PREFIX = 64  # one customer of a provider has at least that much


def address_of(request: HttpRequest) -> str:
    """Return the address that limits count for a request; of an IPv6 address, its /64 network.

    X-Forwarded-For is read from the right, past the proxies in the setting TRUSTED_PROXIES and no further.
    """
    forwarded = request.headers.get("X-Forwarded-For", "")
    return sender(request.META.get("REMOTE_ADDR", ""), forwarded, _trusted())


def sender_of(scope: Any) -> str:
    """Return the same for an ASGI scope."""
    return sender((scope.get("client") or [""])[0], _forwarded(scope), _trusted())


def _forwarded(scope: Any) -> str:
    return ",".join(value.decode("latin1") for name, value in scope["headers"] if name == b"x-forwarded-for")


def is_listed_request(request: HttpRequest, networks: Sequence[str]) -> bool:
    """Tell whether a request comes from one of these networks."""
    forwarded = request.headers.get("X-Forwarded-For", "")
    peer = request.META.get("REMOTE_ADDR", "")
    return _is_listed(peer, forwarded, networks, is_forwarded=_is_forwarded(request.headers))


def is_listed_scope(scope: Any, networks: Sequence[str]) -> bool:
    """Tell the same of an ASGI scope."""
    names = [name.decode("latin1") for name, _ in scope["headers"]]
    peer = (scope.get("client") or [""])[0]
    return _is_listed(peer, _forwarded(scope), networks, is_forwarded=_is_forwarded(names))


def _is_forwarded(names: Iterable[str]) -> bool:
    return any(name in FORWARDING or name.startswith("x-forwarded") for name in map(str.lower, names))


def _is_listed(peer: str, forwarded: str, networks: Sequence[str], *, is_forwarded: bool) -> bool:
    """A proxy that is not trusted hides who asks, and may be on this machine: what it forwards is from nowhere."""
    trusted = _trusted()
    read = _read(peer)
    if is_forwarded and not (forwarded and trusted and (read is None or _is_within(read, trusted))):
        return False
    found = _sender(peer, forwarded, trusted)
    return found is not None and _is_within(found, networks)


def sender(peer: str, forwarded: str, trusted: Sequence[str]) -> str:
    """Return the first address from the right that is not within one of the `trusted` networks."""
    found = _sender(peer, forwarded, trusted)
    return _counted(found) if found is not None else UNKNOWN


def _sender(peer: str, forwarded: str, trusted: Sequence[str]) -> Address | None:
    found = _read(peer)
    # Only a proxy on this machine connects through a Unix socket, which has no address.
    is_proxy = bool(trusted) and (found is None or _is_within(found, trusted))
    for text in reversed(forwarded.split(",")):
        named = _read(text) if is_proxy else None
        if named is None:
            break
        found, is_proxy = named, _is_within(named, trusted)
    return found


def _trusted() -> Sequence[str]:
    found: list[str] = setting("TRUSTED_PROXIES")
    return found


def _read(text: str) -> Address | None:
    """Read an address; some proxies add a port."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _is_within(address: Address, networks: Sequence[str]) -> bool:
    return any(address in ip_network(one, strict=False) for one in networks)


def _counted(address: Address) -> str:
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, IPV6_PREFIX), strict=False))
    return str(address)
