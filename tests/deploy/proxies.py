"""nginx and Caddy with the files of docs/deploy, in front of a port of this machine, and a client that speaks TLS."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from studio.machine.mortal import dies_with_parent
from tests.deploy.files import adapted, program
from tests.live import free_port

HOST = "studio.example"
BACKEND = "127.0.0.1:8000"

# What a main nginx.conf adds to a site.
NGINX = """
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/error.log;
{user}
events {{}}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    include {directory}/site.conf;
}}
"""


@dataclass(frozen=True)
class Proxy:
    """A proxy that listens on two ports: one for TLS, one that only redirects."""

    port: int
    plain_port: int
    directory: Path

    def open(self, *, source: str = "127.0.0.1") -> ssl.SSLSocket:
        """Connect as a browser that knows the name, from this address of the machine."""
        context = ssl.create_default_context(cafile=str(self.directory / "certificate.pem"))
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=60, source_address=(source, 0))
        return context.wrap_socket(plain, server_hostname=HOST)

    def ask(self, request: bytes, *, source: str = "127.0.0.1") -> bytes:
        """Send a request that closes the connection; return the whole answer."""
        with self.open(source=source) as connection:
            connection.sendall(request)
            return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    answer = b""
    while chunk := connection.recv(65536):
        answer += chunk
    return answer


def write_nginx(directory: Path, backend: int) -> tuple[list[str], Proxy]:
    """Write the configuration; return how nginx is started, and where it then listens."""
    proxy = _proxy(directory)
    site = adapted(
        "nginx.conf",
        **{
            "listen 80;": f"listen 127.0.0.1:{proxy.plain_port};",
            "listen 443 ssl;": f"listen 127.0.0.1:{proxy.port} ssl;",
            BACKEND: f"127.0.0.1:{backend}",
            "/etc/ssl/studio.example/fullchain.pem": str(directory / "certificate.pem"),
            "/etc/ssl/studio.example/privkey.pem": str(directory / "key.pem"),
        },
    )
    (directory / "site.conf").write_text(site)
    user = "user root;" if os.geteuid() == 0 else ""
    (directory / "nginx.conf").write_text(NGINX.format(directory=directory, user=user))
    command = [program("nginx", "nginx-light"), "-p", str(directory), "-c", str(directory / "nginx.conf")]
    return [*command, "-e", str(directory / "error.log")], proxy


def write_caddy(directory: Path, backend: int) -> tuple[list[str], Proxy]:
    """The same for Caddy, with a certificate from a file instead of one that it gets itself."""
    proxy = _proxy(directory)
    ports = f"http_port {proxy.plain_port}\n\thttps_port {proxy.port}"
    site = adapted(
        "Caddyfile",
        **{
            "studio.example {\n": (
                f"{{\n\tadmin off\n\t{ports}\n\tdefault_bind 127.0.0.1\n}}\n\n"
                f"studio.example {{\n\ttls {directory}/certificate.pem {directory}/key.pem\n"
            ),
            BACKEND: f"127.0.0.1:{backend}",
        },
    )
    (directory / "Caddyfile").write_text(site)
    caddy = program("caddy", "caddy")
    return [caddy, "run", "--adapter", "caddyfile", "--config", str(directory / "Caddyfile")], proxy


@contextmanager
def running(
    write: Callable[[Path, int], tuple[list[str], Proxy]], directory: Path, backend: int
) -> Iterator[Proxy]:
    """Run a proxy in front of a port, until the block ends."""
    command, proxy = write(directory, backend)
    log = directory / "output.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=os.environ | {"HOME": str(directory), "XDG_DATA_HOME": str(directory)},
            preexec_fn=dies_with_parent(signal.SIGTERM),
        )
    try:
        _wait_until_it_listens(process, proxy, log)
        yield proxy
    finally:
        process.terminate()
        process.wait(60)


def _wait_until_it_listens(process: subprocess.Popen[bytes], proxy: Proxy, log: Path) -> None:
    ends_at = time.monotonic() + 60
    while not _listens(proxy):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < ends_at, log.read_text()
        time.sleep(0.05)


def _listens(proxy: Proxy) -> bool:
    try:
        proxy.open().close()
    except OSError:
        return False
    return True


def _proxy(directory: Path) -> Proxy:
    _make_certificate(directory)
    return Proxy(port=free_port(), plain_port=free_port(), directory=directory)


def _make_certificate(directory: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (directory / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    (directory / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
