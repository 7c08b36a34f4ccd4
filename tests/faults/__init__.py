"""Faults between a client and PostgreSQL, at every statement: see `proxy`."""
