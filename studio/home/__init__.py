"""Home: what needs attention."""
