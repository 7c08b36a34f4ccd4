"""Search instances by what they have at a path of their params or output."""
