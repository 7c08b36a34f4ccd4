"""The page of one instance, and what can be done there."""
