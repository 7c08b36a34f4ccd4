"""What users type: JSON, its schema, and where each problem is."""
