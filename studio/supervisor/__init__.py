"""One process that starts, watches and stops everything."""
