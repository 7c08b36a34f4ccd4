"""A queue between processes that survives the sudden death of any of them.

multiprocessing.Queue shares a lock among its readers. An idle django-q worker waits while holding that lock; if it is
killed there, the lock stays locked, and the cluster never takes work again. Here the kernel is the queue: a pair of
sockets that preserve packets, each packet for exactly one reader, and a dead process holds nothing.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import pickle
import select
import socket
import termios
import time
from queue import Empty, Full
from typing import Any

from engine.worker.cluster.sender import Sender

# Larger packets are sent in a memory file whose descriptor goes with the packet: the socket holds about 200 kB in
# total.
INLINE_BYTES = 32 * 1024

# Every packet is one byte longer than a multiple of this, so that the number of packets follows from the number of
# unread bytes, which the kernel counts and no death can falsify. The socket's buffer holds fewer packets than this.
BLOCK = 256

# A writer that waits for room checks again after this long, then after twice as long.
FIRST_PAUSE = 0.0005
LONGEST_PAUSE = 0.02

# The kernel's errors for "not now": no room, no memory, too many descriptors in flight.
NOT_NOW = {errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.ETOOMANYREFS}


def is_supported() -> bool:
    """Return whether this kernel supports the queue, by trying it."""
    if not hasattr(socket, "SOCK_SEQPACKET") or not hasattr(os, "memfd_create"):
        return False
    try:
        queue = Queue()
        queue.put_nowait("one")
        queue.put_nowait("two")
        return queue.qsize() == 2 and queue.get_nowait() == "one"
    except (OSError, Full, Empty):
        return False


class Queue:
    """The part of multiprocessing.Queue that django-q uses, for objects that can be pickled.

    With a `maxsize`, `put` waits for room. Without one it never waits: what the kernel does not accept at once is sent
    by a thread, in order, and before the process exits.
    """

    def __init__(self, maxsize: int = 0) -> None:
        # With more, the packets could not be counted, and the kernel would not hold them.
        self.maxsize = min(maxsize, BLOCK - 1)
        self._reader, self._writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._sender = Sender(self._send, self._wait_for_room)

    def put(self, item: object, block: bool = True, timeout: float | None = None) -> None:
        """Add an item. Raises `queue.Full` if there is no room in time."""
        packet = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
        if not self.maxsize:
            self._sender.send(packet)
            return
        give_up = None if timeout is None else time.monotonic() + timeout
        pause = FIRST_PAUSE
        while self.full() or not self._send(packet):
            if not block or (give_up is not None and time.monotonic() >= give_up):
                raise Full
            time.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Return the oldest item. Raises `queue.Empty` if none arrives in time."""
        give_up = None if timeout is None else time.monotonic() + timeout
        while True:
            if not block or give_up is not None:
                self._wait_for_item(0 if give_up is None else give_up - time.monotonic())
            packet = self._receive(socket.MSG_DONTWAIT if not block or give_up is not None else 0)
            # None: another reader was faster.
            if packet is not None:
                return pickle.loads(packet)  # noqa: S301 - from a process of this cluster

    def put_nowait(self, item: object) -> None:
        self.put(item, block=False)

    def get_nowait(self) -> Any:
        return self.get(block=False)

    def qsize(self) -> int:
        """Return the number of packets in the kernel, without those of a sender's thread."""
        return self._unread_bytes() % BLOCK

    def empty(self) -> bool:
        return self._unread_bytes() == 0

    def full(self) -> bool:
        return bool(self.maxsize) and self.qsize() >= self.maxsize

    def fileno(self) -> int:
        """Return the descriptor that becomes readable with the first item."""
        return self._reader.fileno()

    def close(self) -> None:
        """Do nothing: the sockets end with the last process that has them."""

    def join_thread(self) -> None:
        """Wait until the kernel has everything that this process has put."""
        self._sender.join()

    def cancel_join_thread(self) -> None:
        self._sender.abandon()

    def __getstate__(self) -> tuple[int, Any, Any]:
        # Only for spawned processes; a forked one inherits it.
        from multiprocessing.reduction import DupFd

        return self.maxsize, DupFd(self._reader.fileno()), DupFd(self._writer.fileno())

    def __setstate__(self, state: tuple[int, Any, Any]) -> None:
        self.maxsize, reader, writer = state
        self._reader, self._writer = (socket.socket(fileno=end.detach()) for end in (reader, writer))
        self._sender = Sender(self._send, self._wait_for_room)

    def __del__(self) -> None:
        for end in (getattr(self, "_reader", None), getattr(self, "_writer", None)):
            if end is not None:
                end.close()

    def _send(self, packet: bytes) -> bool:
        """Send the whole packet to the kernel. Return False if it does not accept it now."""
        try:
            if len(packet) <= INLINE_BYTES:
                self._writer.send(_padded(packet), socket.MSG_DONTWAIT)
            else:
                self._send_in_file(packet)
        except OSError as error:
            if error.errno in NOT_NOW:
                return False
            raise
        return True

    def _send_in_file(self, packet: bytes) -> None:
        # A descriptor in flight belongs to the kernel: whatever process dies, nothing is left behind.
        descriptor = os.memfd_create("reprise-packet")
        try:
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                file.write(packet)
            socket.send_fds(self._writer, [_padded(b"")], [descriptor], socket.MSG_DONTWAIT)
        finally:
            os.close(descriptor)

    def _receive(self, flags: int) -> bytes | None:
        try:
            packet, descriptors, _, _ = socket.recv_fds(self._reader, INLINE_BYTES + 2 * BLOCK, 1, flags)
        except BlockingIOError:
            return None
        if not descriptors:
            return packet
        with os.fdopen(descriptors[0], "rb") as file:
            file.seek(0)
            return file.read()

    def _wait_for_item(self, timeout: float) -> None:
        if not _poll(self._reader, select.POLLIN, max(timeout, 0)):
            raise Empty

    def _wait_for_room(self) -> None:
        _poll(self._writer, select.POLLOUT, 1)
        # There may be room but no memory or no descriptor.
        time.sleep(FIRST_PAUSE)

    def _unread_bytes(self) -> int:
        size = array.array("i", [0])
        fcntl.ioctl(self._reader, termios.FIONREAD, size)
        return size[0]


def _padded(packet: bytes) -> bytes:
    # pickle stops at its own end marker and ignores what follows.
    return packet + b"\0" * ((1 - len(packet)) % BLOCK)


def _poll(end: socket.socket, event: int, timeout: float) -> bool:
    poll = select.poll()
    poll.register(end, event)
    return bool(poll.poll(timeout * 1000))
