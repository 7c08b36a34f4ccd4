"""The client for programs without asyncio."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

import httpx2

from studio.client.answers import Whole
from studio.client.call import Call
from studio.client.http import options_of
from studio.client.methods import method, pages
from studio.client.operations import bulk_jobs as bulk
from studio.client.operations import error_groups as groups
from studio.client.operations import messages, operating, pausing, reading, scheduling, starting, steering
from studio.client.sending import Sending
from studio.client.settings import make_settings
from studio.client.stream import StreamEvent, Subscription, is_stream
from studio.client.waiting import Waiting

T = TypeVar("T")


class Client:
    """Talks to the HTTP API of a Studio. Thread-safe; close it, or use it in a `with` block.

    `base_url` and `token` default to REPRISE_URL and REPRISE_TOKEN. `timeout` is for each attempt, in seconds;
    a request is tried up to `retries` times again if the Studio cannot be reached, is overloaded or restarts, and
    waits at most `max_wait` seconds before each.
    Raises AddressError if address or token cannot be used.
    """

    def __init__(
        self,
        base_url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 4,
        max_wait: float = 30.0,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        self._settings = make_settings(base_url, token, timeout=timeout, retries=retries, max_wait=max_wait)
        self._http = httpx2.Client(**options_of(self._settings, verify))

    def __repr__(self) -> str:
        return f"<Client {self._settings.base_url}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def send(self, call: Call[T], /) -> T:
        """Send a call and return its answer. Raises ApiError."""
        sending = Sending(self._settings, call)
        while True:
            try:
                response = self._http.request(**sending.request())
            except httpx2.RequestError as error:
                pause = sending.pause_after_error(error)
            else:
                wanted = sending.pause_after(response)
                if wanted is None:
                    return sending.answer(response)
                pause = wanted
            time.sleep(pause)

    def subscribe(
        self,
        workflow: str,
        id: str,
        *,
        cursor: str | None = None,
        types: Sequence[str] | None = None,
    ) -> Iterator[StreamEvent]:
        """Iterate over what happens to an instance, from its start or behind `cursor`, until it has ended.

        `types` leaves out other events than `generation`, `action`, `event`, `step`, `attempt`, `log` and `instance`.
        Goes on by itself after a lost connection, with nothing left out or repeated. The last event is `end`.
        """
        stream = Subscription(self._settings, workflow, id, cursor, types)
        while not stream.is_over:
            lost = None
            try:
                with self._http.stream(**stream.request()) as response:
                    if not is_stream(response):
                        response.read()
                    stream.begin(response)
                    for piece in response.iter_bytes():
                        yield from stream.feed(piece)
                        if stream.is_over:
                            return
            except httpx2.RequestError as error:
                lost = error
            if not stream.is_over:
                time.sleep(stream.pause_after(lost))

    def wait(self, workflow: str, id: str, *, timeout: float | None = None) -> Whole:
        """Wait until an instance has ended, and return it. Raises WaitTimeoutError."""
        waiting = Waiting(workflow, id, timeout)
        while True:
            found = self.send(waiting.call)["instance"]
            pause = waiting.pause_after(found)
            if pause is None:
                return found
            time.sleep(pause)

    workflows = method(starting.workflows)
    workflow = method(starting.workflow)
    paused_workflows = method(pausing.paused_workflows)
    pause_workflow = method(pausing.pause_workflow)
    resume_workflow = method(pausing.resume_workflow)
    start = method(starting.start)
    start_batch = method(starting.start_batch)
    instances = pages(reading.instances)
    instances_page = method(reading.instances_page)
    instance = method(reading.instance)
    steps = pages(reading.steps)
    step = method(reading.step)
    events = pages(reading.events)
    events_page = method(reading.events_page)
    children = pages(reading.children)
    generations = pages(reading.generations)
    logs = pages(reading.logs)
    payload = method(reading.payload)
    actions = pages(reading.actions)
    pause = method(steering.pause)
    resume = method(steering.resume)
    terminate = method(steering.terminate)
    restart = method(steering.restart)
    retry_step = method(steering.retry_step)
    fail_step = method(steering.fail_step)
    skip_step = method(steering.skip_step)
    preview_restart = method(steering.preview_restart)
    retry_now = method(steering.retry_now)
    wake_now = method(steering.wake_now)
    retry_rollback = method(steering.retry_rollback)
    accept_code = method(steering.accept_code)
    delete = method(steering.delete)
    add_note = method(steering.add_note)
    preview_bulk_job = method(bulk.preview_bulk_job)
    start_bulk_job = method(bulk.start_bulk_job)
    bulk_jobs = pages(bulk.bulk_jobs)
    bulk_jobs_page = method(bulk.bulk_jobs_page)
    bulk_job = method(bulk.bulk_job)
    bulk_items = pages(bulk.bulk_items)
    bulk_items_page = method(bulk.bulk_items_page)
    pause_bulk_job = method(bulk.pause_bulk_job)
    resume_bulk_job = method(bulk.resume_bulk_job)
    abort_bulk_job = method(bulk.abort_bulk_job)
    retry_failed_bulk_items = method(bulk.retry_failed_bulk_items)
    send_event = method(messages.send_event)
    requests = pages(messages.requests)
    answer = method(messages.answer)
    schedules = pages(scheduling.schedules)
    schedules_page = method(scheduling.schedules_page)
    pause_schedule = method(scheduling.pause_schedule)
    resume_schedule = method(scheduling.resume_schedule)
    run_schedule = method(scheduling.run_schedule)
    error_groups = pages(groups.error_groups)
    error_groups_page = method(groups.error_groups_page)
    error_group = method(groups.error_group)
    error_group_instances = pages(groups.error_group_instances)
    error_group_instances_page = method(groups.error_group_instances_page)
    error_group_trend = method(groups.error_group_trend)
    error_group_shares = method(groups.error_group_shares)
    resolve_error_group = method(groups.resolve_error_group)
    ignore_error_group = method(groups.ignore_error_group)
    reopen_error_group = method(groups.reopen_error_group)
    add_error_group_note = method(groups.add_error_group_note)
    workers = method(operating.workers)
    workers_now = method(operating.workers_now)
    drain_worker = method(operating.drain_worker)
    resume_worker = method(operating.resume_worker)
    health = method(operating.health)
    audit = pages(operating.audit)
    me = method(operating.me)
