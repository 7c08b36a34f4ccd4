"""What goes wrong with a Studio elsewhere is one plain line and an exit code, never a traceback or the token."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from engine.command import choice
from engine.values.errors import RepriseError
from studio.api.problems import KINDS
from studio.remote.refusals import NAMES
from tests.live import PROJECT, free_port
from tests.studio.client.stub import DROP, Reply, problem, serving

TOKEN = "rpr_secret-of-the-test"

# What only the API itself refuses, and what no request can ask for over HTTP.
UNNAMED = frozenset(("not_found", "invalid_cursor"))


def test_each_code_of_the_api_has_the_name_of_its_error() -> None:
    named = {code: kind.__name__ for kind, (_, code) in KINDS.items() if code not in UNNAMED}
    assert dict(NAMES) == named
    assert all(issubclass(kind, RepriseError | LookupError) for kind in KINDS)


def reprise(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `reprise` in a folder of its own, without a project, settings or database."""
    code = "from studio.command.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, "workflow", *arguments],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(PROJECT), "REPRISE_TOKEN": TOKEN, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refused(folder: Path, *arguments: str, code: int = 1, **variables: str) -> str:
    done = reprise(folder, *arguments, **variables)
    assert (done.returncode, done.stdout) == (code, ""), done
    assert TOKEN not in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(folder.iterdir()), "nothing is left behind"
    return done.stderr


def test_a_list_needs_no_project_and_no_database(tmp_path: Path) -> None:
    """What is wrong with the project in this folder does not matter: it is not loaded."""
    (tmp_path / "workflows.py").write_text("raise RuntimeError")
    page = {"instances": [], "next_cursor": None, "now": "2026-11-24T09:00:00+00:00"}
    with serving(Reply(200, page)) as stub:
        done = reprise(tmp_path, "list", REPRISE_URL=stub.url, DATABASE_URL="nonsense")
    assert (done.returncode, done.stdout, done.stderr) == (0, "No instances match.\n", "")
    assert stub.seen[0].headers["Authorization"] == f"Bearer {TOKEN}"
    assert [file.name for file in tmp_path.iterdir()] == ["workflows.py"]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (
            problem(401, "not_authenticated", "The token is unknown, expired or revoked."),
            "The token is unknown, ",
        ),
        (problem(403, "not_allowed", 'This needs the verb "view".'), 'This needs the verb "view".\n'),
        (
            Reply(200, b"<h1>Welcome</h1>", kind="text/html"),
            "The server answered 200 with text/html, not with the HTTP",
        ),
        (Reply(301, b"", {"Location": "https://x.example/"}), "The server redirects to https://x.example/."),
        (Reply(500, b"oh", kind="text/plain"), "The server answered 500 with text/plain"),
        (
            problem(
                429, "too_many_requests", "More than 5 requests in a minute.", headers={"Retry-After": "99"}
            ),
            "More ",
        ),
        (DROP, "cannot be reached: "),
    ],
)
def test_a_server_that_refuses_is_one_line(tmp_path: Path, reply: Reply | str, said: str) -> None:
    with serving(reply) as stub:
        line = refused(tmp_path, "list", REPRISE_URL=stub.url)
    assert said in line
    assert line.count("\n") == 1


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("studio.example.org", "The address of the Studio begins with https:// or http://"),
        ("http://studio.example.org", "http://studio.example.org would send the token unencrypted."),
        ("https://studio.invalid", "https://studio.invalid cannot be reached: "),
    ],
)
def test_an_address_that_is_wrong_is_one_line(tmp_path: Path, url: str, said: str) -> None:
    line = refused(tmp_path, "list", REPRISE_URL=url)
    assert line.startswith(said)
    assert line.count("\n") == 1


def test_a_refused_connection_and_a_missing_token_are_one_line(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert refused(tmp_path, "list", REPRISE_URL=url) == f"{url} cannot be reached: Connection refused.\n"
    assert "There is no token" in refused(tmp_path, "list", REPRISE_URL=url, REPRISE_TOKEN="")


def test_a_certificate_that_nobody_signed_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    with _serving_tls(tmp_path) as port:
        line = refused(folder, "list", REPRISE_URL=f"https://localhost:{port}")
    assert "certificate verify failed" in line
    assert line.count("\n") == 1


def test_refusals_are_json_for_programs(tmp_path: Path) -> None:
    with serving(problem(409, "id_in_use", "It has one.")) as stub:
        line = refused(tmp_path, "start", "tick", "--json", REPRISE_URL=stub.url)
    assert json.loads(line) == {"error": {"type": "InstanceExistsError", "message": "It has one."}}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["pause", "tick/a", "--by", "ada"],
            "Leave out --by: in a Studio elsewhere, the token says who acts.\n",
        ),
        (["replay", "--all-open"], "`workflow replay` runs the code of this project"),
        (["index"], "use it where the project and its database are, without REPRISE_URL."),
        (["show", "tick"], '"tick" is not an instance.'),
    ],
)
def test_what_cannot_be_done_elsewhere_is_a_wrong_call(tmp_path: Path, words: list[str], said: str) -> None:
    assert said in refused(tmp_path, *words, code=2, REPRISE_URL="http://127.0.0.1:1")


def test_a_project_without_the_studio_does_not_act_on_its_own_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choice, "_elsewhere", None)
    monkeypatch.setenv("REPRISE_URL", "https://studio.example.org")
    with pytest.raises(choice.UsageError, match='only the app "studio" can ask'):
        choice.chosen_source()


@contextmanager
def _serving_tls(folder: Path) -> Iterator[int]:
    """Answer handshakes with a certificate that it has signed itself."""
    certificate, key = _certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    try:
                        context.wrap_socket(connection, server_side=True).close()
                    except OSError:
                        continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield port
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _certificate(folder: Path) -> tuple[Path, Path]:
    from datetime import datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder: Any = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    signed = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    certificate, private = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return certificate, private
