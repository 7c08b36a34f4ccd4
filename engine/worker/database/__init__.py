"""A worker and the database: its connections, lock and clock, what it claims and reads, and the journal it writes."""
