"""One process that starts everything, watches it, and takes it all down again."""
