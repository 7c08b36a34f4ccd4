"""The pages of one workflow."""
