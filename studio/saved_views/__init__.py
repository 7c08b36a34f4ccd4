"""Saved views of the list of instances: searches with a name, an address and a count."""
