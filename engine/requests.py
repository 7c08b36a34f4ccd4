"""Requests from code: list the open ones and answer them."""

from engine.steer.requests import answer, open_requests

__all__ = ["answer", "open_requests"]
