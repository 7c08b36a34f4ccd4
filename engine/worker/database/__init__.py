"""A worker's access to the database: connections, lock, clock, claims, reads, and the journal it writes."""
