"""Who may do what: permissions, sessions, limits on attempts, and the queue of those who are not signed in."""
