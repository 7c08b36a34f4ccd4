"""Workers and queues: whether the workers are the reason why something waits."""
