"""Compare an instance with another one, or a generation with another one."""
