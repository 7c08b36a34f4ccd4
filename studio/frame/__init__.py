"""What every page shares: its guard, its pieces, what errors look like."""
