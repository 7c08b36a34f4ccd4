"""What people type: JSON read against a schema, with each problem at its place."""
