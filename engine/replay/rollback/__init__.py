"""Undo what the steps of an instance did, in reverse order of their start."""
