"""How long a bulk retry takes, and what else waits for it."""
