"""The list of instances."""
