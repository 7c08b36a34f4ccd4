"""Open files in a directory that may belong to another account than ours, as it does when root starts us."""

import errno
import os
import stat


def private(path: str, flags: int) -> int:
    """Be an `opener` for `open`: only its owner reads the file, and no link leads us to another one.

    Raises OSError for what is no plain file, or has a second name, which may be that of a file of root's.
    """
    # Emptied only when it is known to be the right one.
    descriptor = os.open(path, flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
        if flags & os.O_TRUNC:
            os.ftruncate(descriptor, 0)
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EMLINK, "is no plain file of its own", path)
