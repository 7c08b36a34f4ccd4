"""The event loop of a handler, on which every replay takes the same turns."""
