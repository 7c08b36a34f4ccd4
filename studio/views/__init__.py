"""A module a page."""
