"""Everything that happened to an instance, in one stream."""
