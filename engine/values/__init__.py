"""Pure values: statuses, names, durations, JSON, errors. What is here decides without a database."""
