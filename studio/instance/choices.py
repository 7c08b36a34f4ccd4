"""What a person can do with an instance: one action stands out, a menu explains the others in a line each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from django.urls import reverse

from engine.status.sentences.bidi import isolated
from studio.instance.page import InstancePage

DECISIONS_SHOWN = 3
LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class Choice:
    """An action. It submits a form, opens a dialog or leads to a page, whichever of the three is set."""

    name: str
    label: str
    icon: str
    does: str
    form: str = ""
    dialog: str = ""
    href: str = ""
    fill: str = ""  # the field that the dialog opens with
    value: str = ""  # what is in it then
    is_danger: bool = False
    is_for_all: bool = False  # it only leads to where others decide

    @property
    def key(self) -> str:
        """Its part of ids."""
        return self.name.replace(":", "-")


@dataclass(frozen=True, slots=True)
class Choices:
    """All actions that the status allows. `primary` stands out; `is_plain` means that it is not urgent."""

    primary: Choice | None
    is_plain: bool
    others: tuple[Choice, ...]


def choices_of(d: InstancePage) -> Choices:
    """Return the actions on an instance, none on an earlier generation."""
    if d.is_past:
        return Choices(None, True, ())
    found = [*_to_go_on(d), *_always(d)]
    primary = _primary(d, found)
    is_plain = primary is not None and primary.name == "pause"
    return Choices(primary, is_plain, tuple(one for one in found if one is not primary))


def _primary(d: InstancePage, found: list[Choice]) -> Choice | None:
    """Return what most likely lets it go on; else what somebody does with an instance that runs, or has ended."""
    wanted = (d.primary, "pause") if d.unfinished else (d.primary, "restart" if d.is_errored else "start")
    by_name = {one.name.partition(":")[0]: one for one in reversed(found)}
    return next((by_name[name] for name in wanted if name in by_name), None)


def _to_go_on(d: InstancePage) -> Iterator[Choice]:
    """Yield what lets it go on, if something keeps it."""
    if d.code and d.code.is_to_be_accepted:
        yield Choice(
            "accept-code",
            "Accept the new code",
            "check",
            "Recorded steps keep their results; the others run with the new code.",
            form="accept-form",
        )
    if d.may_resume:
        yield _resume(d)
    if d.may_retry_rollback:
        yield Choice(
            "retry-rollback",
            "Retry the rollback",
            "rotate-cw",
            "With all its attempts, then earlier steps. What is undone stays so.",
            form="retry-rollback-form",
        )
    if d.may_retry_step:
        yield Choice(
            "retry-step",
            "Retry the step…",
            "rotate-cw",
            "With all its attempts and the same idempotency key.",
            href=f"{_address(d, 'restart')}?step=retry",
        )
    if d.may_decide:
        yield from _decisions(d)
    if d.has_requests:
        yield Choice(
            "answer",
            "Review",
            "diamond",
            "Somebody has to answer a request.",
            href=f"{d.instance.get_absolute_url()}#requests",
            is_for_all=True,
        )
    yield from _sooner(d)


def _resume(d: InstancePage) -> Choice:
    if d.is_pausing:
        return Choice("resume", "Keep running", "play", "Calls off the pause.", form="resume-form")
    does = "Goes on where it stopped. Sleeps and timeouts are longer by the time paused."
    return Choice("resume", "Resume", "play", does, form="resume-form")


def _decisions(d: InstancePage) -> Iterator[Choice]:
    for step in d.exhausted[:DECISIONS_SHOWN]:
        address = reverse("studio:decide", args=[d.instance.workflow, d.instance.id, step.seq])
        label = f"Decide about {isolated(step.name[:LONGEST_NAME])}…"
        does = "Retry the step, skip it with an output that you supply, or let it fail."
        yield Choice(f"decide:{step.seq}", label, "pause", does, href=address)


def _sooner(d: InstancePage) -> Iterator[Choice]:
    if d.may_retry_now:
        does = "Starts the next attempt now, with the same idempotency key."
        yield Choice("retry-now", "Retry now…", "rotate-cw", does, dialog="#retry-now")
    if d.may_wake_now:
        does = "Ends its sleeps. Waits for events, answers and children go on."
        yield Choice("wake-now", "Wake now…", "sun", does, dialog="#wake-now")


def _always(d: InstancePage) -> Iterator[Choice]:
    """Yield what does not depend on what keeps it."""
    if d.may_pause:
        does = "Nothing new starts; what runs is finished."
        yield Choice("pause", "Pause", "pause", does, form="pause-form")
    does = "From the start or a step. Effects outside happen again."
    yield Choice("restart", "Restart…", "rotate-ccw", does, href=_address(d, "restart"))
    if d.may_send:
        yield Choice(
            "send-event",
            "Send event…",
            "send",
            "Kept if nothing waits for it now.",
            dialog="#event",
            fill="#event-type",
            value=next(iter(d.wanted_events), ""),
        )
    address = f"{reverse('studio:start', args=[d.instance.workflow])}?from={quote(d.instance.id, safe='')}"
    yield Choice("start", "Start another like it…", "play", "Same parameters; this one stays.", href=address)
    if d.may_terminate:
        does = "Ends it and the children it waits for."
        yield Choice("terminate", "Terminate…", "square", does, dialog="#terminate", is_danger=True)
    if d.may_delete:
        does = "With its steps, events and log. Children and the audit trail stay."
        yield Choice("delete", "Delete…", "trash-2", does, dialog="#delete", is_danger=True)


def _address(d: InstancePage, name: str) -> str:
    return reverse(f"studio:{name}", args=[d.instance.workflow, d.instance.id])
