"""Open files in a directory of another account, as when root starts us."""

import errno
import os
import stat


def private(path: str, flags: int) -> int:
    """Open a file, as an `opener` for `open`, that only its owner can read. Follows no link.

    Raises OSError for anything but a regular file, and for one with a second name, which may be a file of root.
    """
    # Truncate it only now that it is known to be the right one.
    descriptor = os.open(path, flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
        if flags & os.O_TRUNC:
            os.ftruncate(descriptor, 0)
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EMLINK, "is no plain file of its own", path)
