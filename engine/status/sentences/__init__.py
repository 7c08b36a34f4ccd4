"""Sentences that say where an instance stands, for pages and the command line."""
