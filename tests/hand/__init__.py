"""Workers and cycles that a test moves by hand."""
