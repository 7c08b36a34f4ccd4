"""Durable execution for Django; knows nothing of HTTP."""
