"""The audit trail, as a page and as a file."""
