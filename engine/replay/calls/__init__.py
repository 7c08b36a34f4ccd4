"""A durable call: its identity, the phase of its step, and when its outcome is delivered."""
