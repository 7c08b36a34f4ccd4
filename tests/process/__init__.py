"""An app of tests: clusters of real processes, with tasks and workflows of their own."""
