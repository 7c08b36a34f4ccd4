"""Replay: running a handler from the top over its recorded steps.

`cycle.py` is the place to start: it takes a claimed instance and its history, drives the handler, and records what
comes of it. Nothing here does I/O: a cycle is told what happened and asks its host to write, to run bodies and to
watch the clock.
"""
