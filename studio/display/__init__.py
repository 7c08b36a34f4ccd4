"""How what is stored is shown: statuses, counts, times, JSON values."""
