"""Pure values: statuses, names, durations, JSON, errors. Nothing here needs a database."""
