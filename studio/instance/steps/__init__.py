"""The steps of an instance with their attempts."""
