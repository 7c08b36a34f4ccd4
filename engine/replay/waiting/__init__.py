"""What an instance waits for: events, deadlines, and the ends of other instances."""
