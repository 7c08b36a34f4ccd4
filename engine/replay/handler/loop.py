"""The event loop that handlers run on: deterministic, without I/O and without timers.

A handler sees an ordinary asyncio loop, so futures, tasks, `gather`, `TaskGroup`, locks and queues work. It cannot wait
for anything outside, because a replay could not repeat that: `asyncio.sleep`, sockets and threads are refused with a
message that names the durable operation to use instead.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from asyncio import events
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, NoReturn, TypeVarTuple

from engine.replay.calls.call import Call, InertCall
from engine.replay.handler.ordering import HandlerFuture, HandlerTask, Numbers, order_asyncio
from engine.values.errors import RepriseError

Ts = TypeVarTuple("Ts")


class ForeignAwaitError(RepriseError):
    """Handler code waited for something that is not a durable operation, such as `asyncio.sleep` or a socket.

    Put it into the body of a step. To wait for a time, use `step.sleep`.
    """

    def __init__(self, operation: str, advice: str) -> None:
        self.operation = operation
        super().__init__(
            f"{operation} cannot be used in a workflow's handler: a replay could not repeat it. {advice}"
        )


IN_A_STEP = "Put it in the body of a step: await step.do(name, fn)."
CLOSINGS = 100  # attempts to close a coroutine that awaits again and again
SLEEP = "Use await step.sleep(name, duration), or the timeout= of a step or of step.wait_for_event."


class HandlerLoop(asyncio.AbstractEventLoop):
    """Runs callbacks in the order in which they became ready, and only while `drain` is called."""

    is_of_handler = True  # for `engine.values.between_steps`

    def __init__(self, *instance: str) -> None:
        self.numbers = Numbers(*instance)
        self._ready: deque[asyncio.Handle] = deque()
        self._tasks: list[asyncio.Task[Any]] = []
        self._closed = False
        self._driven_by: int | None = None  # a thread

    # Driving

    @property
    def is_ready(self) -> bool:
        """Tell whether anything is ready to run."""
        return bool(self._ready)

    def drain(self) -> None:
        """Run everything that is ready, and what becomes ready through it.

        Call it from a plain callback of the worker's loop, never from inside a task: since Python 3.14, asyncio tracks
        the current task by thread, not by loop.
        """
        ready = self._ready
        with Running(self):
            while ready:
                handle = ready.popleft()
                if not handle._cancelled:
                    # asyncio re-raises these two. They are also the outcome of their task and end the handler, but
                    # a handler must not end the worker.
                    try:
                        handle._run()
                    except (SystemExit, KeyboardInterrupt):
                        continue

    def shut(self) -> None:
        """Close the coroutines of all tasks, innermost last started first.

        A `finally:` in a handler runs here, up to its first await. asyncio would log that a coroutine ignored
        GeneratorExit and that pending tasks were destroyed, but both are normal when an instance parks.
        """
        self._ready.clear()
        self._closed = True
        try:
            with Running(self):
                for task in reversed(self._tasks):
                    _discard(task)
        finally:
            self._tasks.clear()
            self._ready.clear()

    def _finish(self, generator: AsyncGenerator[Any, Any]) -> None:
        """Close an async generator that the handler has left, as asyncio does; drop it at a park."""
        if self.is_driven_here and not self._closed:
            # The handler does not decide when a generator is collected.
            self._new_task(generator.aclose(), next(self.numbers.strays))

    # What handlers use

    def open_tasks(self) -> list[asyncio.Task[Any]]:
        """Return the tasks that are not done, in the order in which they were made."""
        return [task for task in self._tasks if not task.done()]

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        if not self._closed:
            self._ready.append(handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        future = HandlerFuture(loop=self)
        future.number = next(self.numbers.futures)
        return future

    def create_task(
        self, coro: Any, *, name: str | None = None, context: contextvars.Context | None = None, **kwargs: Any
    ) -> asyncio.Task[Any]:
        operation = coro if isinstance(coro, Call | InertCall) else None
        if operation is not None:
            coro = operation.awaited()
        task = self._new_task(coro, next(self.numbers.tasks), name=name, context=context, **kwargs)
        if isinstance(operation, Call) and not self._closed:
            task.add_done_callback(operation.cancel_with)
        return task

    def _new_task(self, coro: Any, number: int, **kwargs: Any) -> asyncio.Task[Any]:
        task = HandlerTask(coro, loop=self, number=number, **kwargs)
        if self._closed:
            _discard(task)
        else:
            self._tasks.append(task)
        return task

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self._driven_by is not None

    @property
    def is_driven_here(self) -> bool:
        """Tell whether the caller is the handler, and not a body in another thread."""
        return self._driven_by == threading.get_ident()

    def is_closed(self) -> bool:
        return self._closed

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Ignore asyncio's warnings: an outcome that was not awaited is recorded with its step, not lost."""

    # What they cannot use

    def time(self) -> float:
        raise ForeignAwaitError("The loop's clock", "Use step.now().")

    def call_later(self, *args: Any, **kwargs: Any) -> NoReturn:  # type: ignore[override]
        raise ForeignAwaitError("A timer (asyncio.sleep, asyncio.timeout, asyncio.wait_for)", SLEEP)

    def call_at(self, *args: Any, **kwargs: Any) -> NoReturn:  # type: ignore[override]
        raise ForeignAwaitError("A timer (asyncio.sleep, asyncio.timeout, asyncio.wait_for)", SLEEP)

    def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> NoReturn:  # type: ignore[override]
        raise ForeignAwaitError("A call from another thread", IN_A_STEP)

    def run_in_executor(self, *args: Any, **kwargs: Any) -> NoReturn:  # type: ignore[override]
        raise ForeignAwaitError("A thread (asyncio.to_thread, run_in_executor, sync_to_async)", IN_A_STEP)

    def run_forever(self) -> NoReturn:
        raise ForeignAwaitError("run_forever", IN_A_STEP)

    def run_until_complete(self, future: Any) -> NoReturn:
        raise ForeignAwaitError("run_until_complete", IN_A_STEP)

    def stop(self) -> NoReturn:
        raise ForeignAwaitError("loop.stop", "Use await step.complete(output) to end the workflow.")


def _refuse(operation: str) -> Callable[..., NoReturn]:
    def refuse(self: HandlerLoop, *args: Any, **kwargs: Any) -> NoReturn:
        raise ForeignAwaitError(operation, IN_A_STEP)

    return refuse


# Everything else that an event loop offers is I/O. AbstractEventLoop refuses it without a message.
_IO = """
    add_reader add_writer remove_reader remove_writer add_signal_handler remove_signal_handler sock_recv
    sock_recv_into sock_recvfrom sock_recvfrom_into sock_sendall sock_sendto sock_connect sock_accept sock_sendfile
    create_connection create_server create_unix_connection create_unix_server create_datagram_endpoint sendfile
    start_tls connect_accepted_socket connect_read_pipe connect_write_pipe subprocess_shell subprocess_exec
    getaddrinfo getnameinfo set_default_executor
"""
for _name in _IO.split():
    setattr(HandlerLoop, _name, _refuse(f"I/O (loop.{_name})"))

order_asyncio(HandlerLoop)


class Running:
    """Makes a loop the running one, also for async generators, which the worker's loop would otherwise finish."""

    __slots__ = ("_hooks", "_loop", "_outer")

    def __init__(self, loop: HandlerLoop) -> None:
        self._loop = loop

    def __enter__(self) -> None:
        self._outer, self._hooks = events._get_running_loop(), sys.get_asyncgen_hooks()
        events._set_running_loop(self._loop)
        sys.set_asyncgen_hooks(None, self._loop._finish)
        self._loop._driven_by = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self._loop._driven_by = None
        sys.set_asyncgen_hooks(*self._hooks)
        events._set_running_loop(self._outer)


def _discard(task: asyncio.Task[Any]) -> None:
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    if not task.done():
        _close(task.get_coro())


def _close(coro: Coroutine[Any, Any, Any] | Any) -> None:
    """Close a coroutine now. One that awaits in a `finally:` would otherwise end when it is collected."""
    for _ in range(CLOSINGS):
        try:
            coro.close()
        except RuntimeError:  # it ignored GeneratorExit, or raised this itself and is closed the next time
            continue
        except BaseException:  # noqa: BLE001 - user code in a `finally:`, whose errors nobody can handle
            return
        return
