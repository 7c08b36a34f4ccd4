"""Close a worker's loop without waiting for anything that may never end."""

from __future__ import annotations

import asyncio

LAST_SECONDS = 1.0


def close(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what still runs, wait a moment, and close the loop.

    asyncio.Runner would wait for every task and join the threads of the loop's executor: a body that swallows its
    cancellation, or a call that never returns, would block the worker forever.
    """
    try:
        loop.run_until_complete(_cancel_all())
        generators = loop.create_task(loop.shutdown_asyncgens())
        loop.run_until_complete(asyncio.wait([generators], timeout=LAST_SECONDS))
    finally:
        loop.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if not tasks:
        return
    _, left = await asyncio.wait(tasks, timeout=LAST_SECONDS)
    for task in left:
        # asyncio would log it when the process ends; the body has already been named.
        task._log_destroy_pending = False  # type: ignore[attr-defined]
