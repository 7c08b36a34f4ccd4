"""How stored values are shown: statuses, counts, times, JSON."""
