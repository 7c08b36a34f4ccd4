"""engine/README.md shows exactly what the code's tables say, and names what is there."""

from __future__ import annotations

import re

from engine.values import states
from tests.diagrams import FINAL_ATTEMPTS, PAGE, SECTIONS, made, names

TEXT = PAGE.read_text()
PROJECT = PAGE.parents[1]


def test_the_page_shows_what_the_tables_say() -> None:
    assert made(TEXT) == TEXT, "run python -m tests.diagrams"
    assert sorted(names(TEXT)) == sorted(SECTIONS)


def test_each_change_is_an_arrow_of_its_own() -> None:
    """A label must not end its line: that is where mermaid finds the next arrow."""
    for section in ("instances", "steps", "attempts"):
        for line in SECTIONS[section]().splitlines()[2:-1]:
            assert re.fullmatch(r"    (\[\*\]|\w+) --> (\[\*\]|\w+)(: [\w ,>-]+)?", line), line


def test_a_restart_is_possible_from_everywhere_as_the_page_says() -> None:
    S = states.InstanceStatus
    restarts = {
        before for (before, after), why in states.CHANGES.items() if "restart" in why and after == S.QUEUED
    }
    assert restarts == states.ACTIONS[states.Action.RESTART] - {S.QUEUED}


def test_what_has_ended_stays_as_it_is() -> None:
    steps, attempts = states.STEP_CHANGES, states.ATTEMPT_CHANGES
    # Only a nested step that failed is tried again, with the step around it, when a person retries that.
    again = (states.StepStatus.ERRORED, states.StepStatus.WAITING)
    assert {before for before, _ in {*steps} - {again}} == set(states.StepStatus) - states.FINAL_STEPS
    assert {before for before, _ in attempts} == set(states.AttemptStatus) - FINAL_ATTEMPTS
    assert not any(before == after for before, after in (*states.CHANGES, *steps, *attempts))


def test_every_file_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`((?:engine|studio|tests|docs)/[\w/.-]+\.(?:py|md))`", TEXT))
    named |= {
        f"engine/{one}"
        for one in re.findall(
            r"`((?:replay|worker|invariants|models|command|status|steer|values|declare)/[\w/]+\.py)`", TEXT
        )
    }
    assert len(named) > 20
    assert [one for one in sorted(named) if not (PROJECT / one).is_file()] == []
