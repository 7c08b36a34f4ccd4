"""What a client is told: where the Studio is, the token, and its patience."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from engine.version import VERSION
from studio.client.errors import AddressError

URL, TOKEN, INSECURE = "REPRISE_URL", "REPRISE_TOKEN", "REPRISE_INSECURE"
API = "/api/v1"


@dataclass(frozen=True, slots=True)
class Settings:
    """Checked settings."""

    base_url: str  # without the path of the API
    token: str = field(repr=False)
    timeout: float
    retries: int
    max_wait: float  # before one retry, whatever Retry-After says
    connect_timeout: float = 5.0

    @property
    def is_secure(self) -> bool:
        return self.base_url.startswith("https://")

    def headers(self) -> dict[str, str]:
        return {
            "Accept": "application/json",
            "Authorization": f"Bearer {self.token}",
            "User-Agent": f"reprise-client/{VERSION}",
        }


def make_settings(
    base_url: str | None,
    token: str | None,
    *,
    timeout: float,
    retries: int,
    max_wait: float,
    variables: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings, with defaults from the environment. Raises AddressError."""
    variables = os.environ if variables is None else variables
    url = variables.get(URL, "") if base_url is None else base_url
    secret = (variables.get(TOKEN, "") if token is None else token).strip()
    if not url:
        raise AddressError(f"Which Studio? Name its address, or set {URL}.")
    if not secret:
        raise AddressError(f"There is no token. Set {TOKEN} to one from the Studio's page Tokens.")
    if not (secret.isascii() and secret.isprintable() and " " not in secret):
        raise AddressError("The token has characters that no token has. Copy it again.")
    may_be_plain = variables.get(INSECURE, "") in ("1", "true", "yes", "on")
    base = _base_of(url, may_be_plain=may_be_plain)
    return Settings(base, secret, timeout=timeout, retries=retries, max_wait=max_wait)


def _base_of(url: str, *, may_be_plain: bool) -> str:
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise AddressError("The address of the Studio is not a URL.") from None
    if parts.scheme not in ("http", "https") or not host:
        raise AddressError("The address of the Studio begins with https:// or http://, and has a host.")
    if parts.username is not None or parts.password is not None:
        raise AddressError(
            "The address of the Studio has a user or a password. Remove it: the token is enough."
        )
    if parts.query or parts.fragment:
        raise AddressError("The address of the Studio ends before ? and #.")
    if parts.scheme == "http" and not (may_be_plain or _is_loopback(host)):
        raise AddressError(
            f"http://{host} would send the token unencrypted. Use https, or set {INSECURE}=1 if the network is trusted."
        )
    name = f"[{host}]" if ":" in host else host
    where = f"{name}:{port}" if port is not None else name
    return f"{parts.scheme}://{where}{parts.path.rstrip('/').removesuffix(API)}"


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
