"""What the code declares: workflows, their handlers and params, steps, events, schedules."""
