"""Bodies that call steps of their own."""
