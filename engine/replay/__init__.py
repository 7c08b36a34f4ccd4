"""Replay: running a handler from the top over its recorded steps.

Start with `cycle.py`: it takes a claimed instance and its history, runs the handler, and records the outcomes. Nothing
here does I/O. A cycle is told what happened, and asks its host to write, to run bodies and to watch the clock.
"""
