"""An app as people write it: workflows that tests start."""
