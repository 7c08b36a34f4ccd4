"""Bulk jobs: one action on many instances, done in batches by an instance of a workflow of Reprise itself."""
