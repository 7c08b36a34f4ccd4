"""The results of many runs, as a page."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree

LONGEST_TEXT = 1500


class Report:
    """Counts runs and failures of each test, and writes them to a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.left_out: list[str] = []
        self._began = time.time()
        self._runs: Counter[str] = Counter()
        self._skips: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    @property
    def failures(self) -> int:
        return self._failed.total()

    def add(self, file: str, results: ElementTree) -> None:
        """Count the results of one run of a file, as pytest writes them."""
        for case in results.iter("testcase"):
            name = f"{file}::{case.get('name')}"
            if case.find("skipped") is not None:
                self._skips[name] += 1
                continue
            self._runs[name] += 1
            problem = case.find("failure") if case.find("failure") is not None else case.find("error")
            if problem is not None:
                self._note(name, _text(problem))

    def add_crash(self, file: str, output: str) -> None:
        """Count a run that did not finish."""
        self._runs[file] += 1
        self._note(file, output[-LONGEST_TEXT:])

    def _note(self, name: str, text: str) -> None:
        self._failed[name] += 1
        self._first.setdefault(name, text)

    def summary(self) -> str:
        counts = sorted(Counter(self._runs.values()).items())
        how_often = ", ".join(f"{number} tests {times} times" for times, number in counts)
        return f"{self._runs.total()} runs, {self.failures} failures; {how_often}. {self.path}"

    def write(self) -> None:
        lines = ["# Repeated runs", "", self.summary(), "", _where(self._began), ""]
        if self.left_out:
            lines += [f"Broken off before all rounds of: {', '.join(self.left_out)}", ""]
        lines += ["| failures | runs | test |", "| --- | --- | --- |"]
        lines += [
            f"| {count} | {self._runs[name]} | `{name}` |" for name, count in self._failed.most_common()
        ]
        lines += [
            "",
            f"{len(self._runs) - len(self._failed)} tests never failed; {len(self._skips)} were skipped.",
            "",
        ]
        for name, _ in self._failed.most_common():
            lines += [f"## {name}", "", "```", self._first[name], "```", ""]
        self.path.write_text("\n".join(lines))


def _text(problem: Element) -> str:
    text = f"{problem.get('message', '')}\n{problem.text or ''}"
    return text if len(text) <= LONGEST_TEXT else f"{text[:300]}\n…\n{text[300 - LONGEST_TEXT :]}"


def _where(began: float) -> str:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    load = os.getloadavg()[0]
    minutes = (time.time() - began) / 60
    return f"Commit {commit.stdout.strip()}, {os.cpu_count()} cores, load {load:.1f}, {minutes:.0f} minutes."
