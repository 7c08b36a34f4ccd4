"""The container files of docs/deploy keep to their schemas, and name only what exists.

Nothing is built and nothing runs: that takes a container engine.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.urls import resolve
from jsonschema import Draft202012Validator

from engine.configuration import SETTINGS
from engine.worker.shift import GRACE_SECONDS
from studio.environment import Role, SettingError, read_environment, secret_key
from tests.deploy.commands import check_command
from tests.deploy.files import DEPLOY
from tests.live import PROJECT

pytestmark = pytest.mark.second_tier

MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
MORE = 5  # seconds that all the rest of a stop may take
OTHERS = {"DJANGO_SETTINGS_MODULE", "PATH", "PYTHONUNBUFFERED"}  # variables that are not ours

Object = Mapping[str, Any]


def objects() -> Iterator[Object]:
    for path in MANIFESTS:
        yield from yaml.safe_load_all(path.read_text())


def one(kind: str, name: str) -> Object:
    (found,) = (it for it in objects() if (it["kind"], it["metadata"]["name"]) == (kind, name))
    return found


def pods() -> Iterator[tuple[str, Object]]:
    """Return the pods that something makes, by its name."""
    for it in objects():
        if "template" in it.get("spec", {}):
            yield it["metadata"]["name"], it["spec"]["template"]


def containers() -> Iterator[tuple[str, Object]]:
    for name, pod in pods():
        (container,) = pod["spec"]["containers"]
        yield name, container


def compose() -> Object:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


def errors(schema: str, document: object) -> list[str]:
    validator = Draft202012Validator(json.loads((Path(__file__).parent / "schemas" / schema).read_text()))
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]


def test_manifests_keep_to_the_schemas_of_kubernetes() -> None:
    assert {it["metadata"]["name"]: errors("kubernetes.json", it) for it in objects()} == {
        it["metadata"]["name"]: [] for it in objects()
    }


@pytest.mark.parametrize(
    ("right", "wrong"), [("periodSeconds", "perodSeconds"), ("replicas: 2", "replicas: two")]
)
def test_the_schemas_find_mistakes(right: str, wrong: str) -> None:
    text = (DEPLOY / "kubernetes" / "web.yaml").read_text()
    assert right in text
    assert errors("kubernetes.json", next(yaml.safe_load_all(text.replace(right, wrong))))


def test_compose_keeps_to_its_specification() -> None:
    assert errors("compose.json", compose()) == []
    assert errors("compose.json", compose() | {"service": {}})


def test_every_command_exists() -> None:
    for _, container in containers():
        check_command(container.get("args") or image_command())
    for name, service in compose()["services"].items():
        if name != "database":
            check_command(service.get("command") or image_command())
    health = compose()["services"]["workers"]["healthcheck"]["test"]
    assert health[0] == "CMD"
    check_command(health[1:])
    check_command(dict(containers())["shop-workers"]["readinessProbe"]["exec"]["command"])


def test_probes_ask_what_the_studio_answers() -> None:
    web = dict(containers())["shop-web"]
    asked = {name: web[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert {name: resolve(get["path"]).url_name for name, get in asked.items()} == {
        "startupProbe": "readyz",
        "readinessProbe": "readyz",
        "livenessProbe": "healthz",
    }
    assert {get["port"] for get in asked.values()} == {web["ports"][0]["name"]}
    # A database that is away must not restart anything.
    assert "livenessProbe" not in dict(containers())["shop-workers"]
    (path,) = re.findall(r"127\.0\.0\.1:8000(/\w+)", compose()["services"]["web"]["healthcheck"]["test"][-1])
    assert resolve(path).url_name == "healthz"


def test_there_is_time_to_drain() -> None:
    for name, pod in pods():
        if name == "shop-migrate":
            continue
        (container,) = pod["spec"]["containers"]
        hook = shlex.join(container["lifecycle"]["preStop"]["exec"]["command"])
        (pause,) = re.findall(r"sleep (\d+)", hook)
        assert pod["spec"]["terminationGracePeriodSeconds"] > int(pause) + GRACE_SECONDS + MORE, name
        assert ("kill -USR1 1;" in hook) == (name == "shop-workers")
    services = compose()["services"]
    assert seconds(services["workers"]["stop_grace_period"]) > GRACE_SECONDS + MORE
    assert seconds(services["web"]["stop_grace_period"]) > GRACE_SECONDS


def test_variables_are_ours_and_take_the_values() -> None:
    sources = "".join(path.read_text() for path in (PROJECT / "studio" / "environment").glob("*.py"))
    known = {setting.environment_variable for setting in SETTINGS.values()} | OTHERS
    told = dict(one("ConfigMap", "shop")["data"]) | dict(one("Secret", "shop")["stringData"])
    roles = [container["env"] for _, container in containers() if "env" in container]
    told |= {item["name"]: item["value"] for env in roles for item in env}
    for service in compose()["services"].values():
        told |= {
            name: value for name, value in service.get("environment", {}).items() if "POSTGRES" not in name
        }
    assert [name for name in told if name not in known and f'"{name}"' not in sources] == []

    environment = read_environment(told | {"REPRISE_APPS": ""}, folder=PROJECT)
    assert (environment.is_secure, environment.origins) == (True, ("https://studio.example",))
    assert {item["value"] for env in roles for item in env if item["name"] == "REPRISE_ROLE"} == {
        Role.WEB,
        Role.CLUSTER,
    }
    # Nobody gets far with the key that stands in the file.
    with pytest.raises(SettingError, match="too weak"):
        secret_key(told, environment.home)


def test_what_manifests_refer_to_exists() -> None:
    for name, container in containers():
        for source in container["envFrom"]:
            kind = "ConfigMap" if "configMapRef" in source else "Secret"
            one(kind, next(iter(source.values()))["name"])
        assert container["image"] == "registry.example/shop:1", name
    labels = {name: pod["metadata"]["labels"] for name, pod in pods()}
    for it in objects():
        selector = it.get("spec", {}).get("selector")
        if selector:
            wanted = selector.get("matchLabels", selector)
            assert wanted.items() <= labels[it["metadata"]["name"]].items(), it["metadata"]["name"]
    (rule,) = one("Ingress", "shop-web")["spec"]["rules"]
    backend = rule["http"]["paths"][0]["backend"]["service"]
    service = one("Service", backend["name"])["spec"]["ports"][0]
    assert (backend["port"]["name"], service["targetPort"]) == (service["name"], "http")


def test_services_of_compose_wait_for_what_they_need() -> None:
    services = compose()["services"]
    assert {name: it.get("depends_on") for name, it in services.items()} == {
        "database": None,
        "migrate": {"database": {"condition": "service_healthy"}},
        "web": {"migrate": {"condition": "service_completed_successfully"}},
        "workers": {"migrate": {"condition": "service_completed_successfully"}},
    }
    assert [mount.split(":")[0] for mount in services["database"]["volumes"]] == [*compose()["volumes"]]


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile."""
    lines = [line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [
        (line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in joined.splitlines() if line.strip()
    ]


def image_command() -> list[str]:
    (command,) = (json.loads(rest) for name, rest in instructions() if name == "CMD")
    return list(command)


def test_the_image_copies_only_what_there_is() -> None:
    # Of a project, beside its own packages.
    context, stages = {"requirements.txt", "."}, set()
    made = {"/venv"}
    for name, rest in instructions():
        if name == "FROM" and " AS " in rest:
            stages.add(rest.split(" AS ")[1])
        if name == "COPY":
            words = shlex.split(rest)
            options = [word for word in words if word.startswith("--")]
            source, _ = (word for word in words if not word.startswith("--"))
            assert source in (made if options else context), rest
            assert {option.removeprefix("--from=") for option in options} <= stages
    assert stages == {"build"}
    assert ".env" in (DEPLOY / ".dockerignore").read_text().split()


def test_the_image_runs_as_nobody_special_and_passes_signals_on() -> None:
    found = instructions()
    users = [int(rest) for name, rest in found if name == "USER"]
    assert users == [10001]
    assert any(name == "RUN" and "--uid 10001" in rest for name, rest in found)
    assert ("ENTRYPOINT", '["tini", "--"]') in found
    assert any(name == "RUN" and "tini" in rest for name, rest in found)
    assert all(pod["spec"]["securityContext"]["runAsUser"] == users[0] for _, pod in pods())
    check_command(image_command())


def test_the_image_keeps_to_the_rules_for_dockerfiles() -> None:
    """Check what hadolint would say first: it is not among the programs that a test may install."""
    found = instructions()
    names = {name for name, _ in found}
    assert names <= {
        "FROM",
        "COPY",
        "RUN",
        "WORKDIR",
        "ENV",
        "USER",
        "EXPOSE",
        "STOPSIGNAL",
        "ENTRYPOINT",
        "CMD",
    }
    bases = [rest.split()[0] for name, rest in found if name == "FROM"]
    assert len(set(bases)) == 1, "the environment refers to the Python of its stage"
    assert all(":" in base and not base.endswith(":latest") for base in bases)
    for name, rest in found:
        if name in ("CMD", "ENTRYPOINT"):
            assert json.loads(rest), f"a shell would swallow signals: {rest}"
        if name == "WORKDIR":
            assert rest.startswith("/")
        if name == "RUN" and "apt-get" in rest:
            assert re.search(r"apt-get update +&& apt-get install --yes --no-install-recommends ", rest)
            assert "rm -rf /var/lib/apt/lists/*" in rest
        if name == "RUN" and "pip install" in rest:
            assert "--no-cache-dir" in rest
        if name == "RUN" and "useradd" in rest:
            assert "--no-log-init" in rest, "the log of logins would be as large as the highest id"
    assert [name for name, _ in found][-3:] == ["STOPSIGNAL", "ENTRYPOINT", "CMD"]
