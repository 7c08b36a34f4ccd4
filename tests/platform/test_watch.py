"""Which files count as code, when a change is over, and what watching costs."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from studio.supervisor.watch import Places, Watch


class Folder:
    """A folder with an app, and a clock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.now = 0.0
        self.file = self.write("shop/workflows.py")

    def write(self, name: str, text: str = "1") -> str:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return str(file)

    def watch(self, *templates: str, left_out: tuple[str, ...] = ()) -> Watch:
        return Watch(Places((str(self.path),), templates, left_out))

    def look(self, watch: Watch) -> list[list[str]]:
        """Return what four looks find: the first that may find something, one too soon, and two more."""
        self.now += 1000
        return [watch.changed(self.now + second) for second in (0, 0.1, 1, 3)]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_change_is_told_once_when_it_is_over(folder: Folder) -> None:
    watch = folder.watch()
    assert folder.look(watch) == [[], [], [], []]
    folder.write("shop/workflows.py", "12")
    assert folder.look(watch) == [[], [], [folder.file], []]
    Path(folder.file).unlink()
    assert folder.look(watch) == [[], [], [folder.file], []]


def test_a_file_that_an_editor_moved_into_place_has_changed(folder: Folder) -> None:
    watch = folder.watch()
    draft = Path(folder.write("shop/.workflows.py.swp", "12"))
    os.utime(draft, ns=(0, 0))  # older than what it replaces
    draft.rename(folder.file)
    assert folder.look(watch) == [[], [], [folder.file], []]


def test_new_modules_and_packages_count(folder: Folder) -> None:
    watch = folder.watch()
    made = [folder.write("lib.py"), folder.write("pack/__init__.py"), folder.write("pack/inner/deep.py")]
    assert folder.look(watch)[2] == made
    assert watch.changed(folder.now + 100) == []


def test_what_is_no_code_does_not_count(folder: Folder) -> None:
    folder.write("env/pyvenv.cfg")
    watch = folder.watch(left_out=(str(folder.path / "data"),))
    for name in (
        *(".git/hook.py", ".venv/lib/x.py", ".reprise/x.py", "env/lib/x.py", "data/x.py"),
        *("node_modules/x/x.py", "shop/__pycache__/x.py", "lib/site-packages/x.py"),
        *("shop/test_x.py", "conftest.py", "shop/.#workflows.py", "report.html", "notes.txt"),
    ):
        folder.write(name)
    (folder.path / "loop").symlink_to(folder.path)
    (folder.path / "nothing.py").symlink_to("nowhere")
    assert folder.look(watch) == [[], [], [], []]


def test_every_file_of_a_folder_of_templates_counts(folder: Folder) -> None:
    mails = folder.path / "mails"
    watch = folder.watch(str(mails))
    made = [folder.write("mails/hello.txt"), folder.write("shop/templates/shop/page.html")]
    folder.write("mails/hello.txt~")
    assert folder.look(watch)[2] == made


def test_what_was_taken_back_is_no_change(folder: Folder) -> None:
    watch = folder.watch()
    status = Path(folder.file).stat()
    folder.write("shop/workflows.py", "12")
    assert watch.changed(1) == []
    assert watch.is_moving
    folder.write("shop/workflows.py")
    os.utime(folder.file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert folder.look(watch) == [[], [], [], []]
    assert not watch.is_moving


def test_other_places_are_followed_and_no_change_is_lost(folder: Folder, tmp_path: Path) -> None:
    watch = folder.watch()
    other = Folder(tmp_path / ".other")
    folder.write("shop/workflows.py", "12")
    watch.follow(Places((str(folder.path), str(other.path))))
    assert folder.look(watch) == [[], [], [folder.file], []]
    other.write("shop/workflows.py", "12")
    assert folder.look(watch) == [[], [], [other.file], []]


def test_a_change_that_is_urgent_is_seen_at_once(folder: Folder) -> None:
    watch = folder.watch()
    assert watch.changed(10) == []
    folder.write("shop/workflows.py", "12")
    assert watch.changed(10.1) == []
    assert not watch.is_moving
    assert watch.changed(10.1, is_urgent=True) == []
    assert watch.is_moving
    assert watch.changed(10.2, is_urgent=True) == []  # it may still change
    assert watch.changed(10.6) == [folder.file]


def test_thousands_of_files_cost_less_than_a_hundredth_of_a_core(folder: Folder) -> None:
    for package in range(100):
        for module in range(30):
            folder.write(f"app{package}/m{module}.py")
    watch = folder.watch()
    began = time.process_time()
    for fifth in range(60 * 5):
        assert watch.changed(fifth / 5) == []
    assert (time.process_time() - began) / 60 < 0.01
    folder.write("app7/m7.py", "12")
    found = (watch.changed(60 + fifth / 5) for fifth in range(120 * 5))
    assert next(changed for changed in found if changed) == [str(folder.path / "app7/m7.py")]


def test_very_many_files_are_read_in_slices(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.supervisor.watch.SLICE_SECONDS", -1)  # a folder at each look
    changed = folder.write("pack/m.py")
    watch = folder.watch()
    for second in range(10):
        assert watch.changed(second) == []
    folder.write("pack/m.py", "12")
    found = [files for second in range(10, 40) if (files := watch.changed(second))]
    assert found == [[changed]]
