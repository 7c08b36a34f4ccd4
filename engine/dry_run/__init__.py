"""Replay recorded instances with the present code, without going on: what a deploy would stop or change."""
