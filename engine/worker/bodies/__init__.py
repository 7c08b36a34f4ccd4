"""Bodies: the threads, sessions and transactions in which they run, and the slices of time of handlers."""
