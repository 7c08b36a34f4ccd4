"""The client for programs with asyncio."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

import httpx2

from studio.client.answers import Whole
from studio.client.call import Call
from studio.client.http import options_of
from studio.client.methods import async_method, async_pages
from studio.client.operations import bulk_jobs as bulk
from studio.client.operations import error_groups as groups
from studio.client.operations import messages, operating, pausing, reading, scheduling, starting, steering
from studio.client.sending import Sending
from studio.client.settings import make_settings
from studio.client.stream import StreamEvent, Subscription, is_stream
from studio.client.waiting import Waiting

T = TypeVar("T")


class AsyncClient:
    """The same as Client, for asyncio. Close it, or use it in an `async with` block.

    `base_url` and `token` default to REPRISE_URL and REPRISE_TOKEN. `timeout` is for each attempt, in seconds;
    a request is tried up to `retries` times again if the Studio cannot be reached, is overloaded or restarts.
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
        self._http = httpx2.AsyncClient(**options_of(self._settings, verify))

    def __repr__(self) -> str:
        return f"<AsyncClient {self._settings.base_url}>"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def send(self, call: Call[T], /) -> T:
        """Send a call and return its answer. Raises ApiError."""
        sending = Sending(self._settings, call)
        while True:
            try:
                response = await self._http.request(**sending.request())
            except httpx2.RequestError as error:
                pause = sending.pause_after_error(error)
            else:
                wanted = sending.pause_after(response)
                if wanted is None:
                    return sending.answer(response)
                pause = wanted
            await asyncio.sleep(pause)

    async def subscribe(
        self,
        workflow: str,
        id: str,
        *,
        cursor: str | None = None,
        types: Sequence[str] | None = None,
    ) -> AsyncIterator[StreamEvent]:
        """Iterate over what happens to an instance, from its start or behind `cursor`, until it has ended.

        `types` leaves out other events than `generation`, `action`, `event`, `step`, `attempt`, `log` and `instance`.
        Goes on by itself after a lost connection, with nothing left out or repeated. The last event is `end`.
        """
        stream = Subscription(self._settings, workflow, id, cursor, types)
        while not stream.is_over:
            lost = None
            try:
                async with self._http.stream(**stream.request()) as response:
                    if not is_stream(response):
                        await response.aread()
                    stream.begin(response)
                    async for piece in response.aiter_bytes():
                        for event in stream.feed(piece):
                            yield event
                        if stream.is_over:
                            return
            except httpx2.RequestError as error:
                lost = error
            if not stream.is_over:
                await asyncio.sleep(stream.pause_after(lost))

    async def wait(self, workflow: str, id: str, *, timeout: float | None = None) -> Whole:  # noqa: ASYNC109  as Client
        """Wait until an instance has ended, and return it. Raises WaitTimeoutError."""
        waiting = Waiting(workflow, id, timeout)
        while True:
            found = (await self.send(waiting.call))["instance"]
            pause = waiting.pause_after(found)
            if pause is None:
                return found
            await asyncio.sleep(pause)

    workflows = async_method(starting.workflows)
    workflow = async_method(starting.workflow)
    paused_workflows = async_method(pausing.paused_workflows)
    pause_workflow = async_method(pausing.pause_workflow)
    resume_workflow = async_method(pausing.resume_workflow)
    start = async_method(starting.start)
    start_batch = async_method(starting.start_batch)
    instances = async_pages(reading.instances)
    instances_page = async_method(reading.instances_page)
    instance = async_method(reading.instance)
    steps = async_pages(reading.steps)
    step = async_method(reading.step)
    events = async_pages(reading.events)
    events_page = async_method(reading.events_page)
    children = async_pages(reading.children)
    generations = async_pages(reading.generations)
    logs = async_pages(reading.logs)
    payload = async_method(reading.payload)
    actions = async_pages(reading.actions)
    pause = async_method(steering.pause)
    resume = async_method(steering.resume)
    terminate = async_method(steering.terminate)
    restart = async_method(steering.restart)
    retry_step = async_method(steering.retry_step)
    fail_step = async_method(steering.fail_step)
    skip_step = async_method(steering.skip_step)
    preview_restart = async_method(steering.preview_restart)
    retry_now = async_method(steering.retry_now)
    wake_now = async_method(steering.wake_now)
    retry_rollback = async_method(steering.retry_rollback)
    accept_code = async_method(steering.accept_code)
    delete = async_method(steering.delete)
    add_note = async_method(steering.add_note)
    preview_bulk_job = async_method(bulk.preview_bulk_job)
    start_bulk_job = async_method(bulk.start_bulk_job)
    bulk_jobs = async_pages(bulk.bulk_jobs)
    bulk_jobs_page = async_method(bulk.bulk_jobs_page)
    bulk_job = async_method(bulk.bulk_job)
    bulk_items = async_pages(bulk.bulk_items)
    bulk_items_page = async_method(bulk.bulk_items_page)
    pause_bulk_job = async_method(bulk.pause_bulk_job)
    resume_bulk_job = async_method(bulk.resume_bulk_job)
    abort_bulk_job = async_method(bulk.abort_bulk_job)
    retry_failed_bulk_items = async_method(bulk.retry_failed_bulk_items)
    send_event = async_method(messages.send_event)
    requests = async_pages(messages.requests)
    answer = async_method(messages.answer)
    schedules = async_pages(scheduling.schedules)
    schedules_page = async_method(scheduling.schedules_page)
    pause_schedule = async_method(scheduling.pause_schedule)
    resume_schedule = async_method(scheduling.resume_schedule)
    run_schedule = async_method(scheduling.run_schedule)
    error_groups = async_pages(groups.error_groups)
    error_groups_page = async_method(groups.error_groups_page)
    error_group = async_method(groups.error_group)
    error_group_instances = async_pages(groups.error_group_instances)
    error_group_instances_page = async_method(groups.error_group_instances_page)
    error_group_trend = async_method(groups.error_group_trend)
    error_group_shares = async_method(groups.error_group_shares)
    resolve_error_group = async_method(groups.resolve_error_group)
    ignore_error_group = async_method(groups.ignore_error_group)
    reopen_error_group = async_method(groups.reopen_error_group)
    add_error_group_note = async_method(groups.add_error_group_note)
    workers = async_method(operating.workers)
    workers_now = async_method(operating.workers_now)
    drain_worker = async_method(operating.drain_worker)
    resume_worker = async_method(operating.resume_worker)
    health = async_method(operating.health)
    audit = async_pages(operating.audit)
    me = async_method(operating.me)
