"""The calls that need no function of the user's: sleeps, milestones, waits for events, requests to people."""
