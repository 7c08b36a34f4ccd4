"""The calls about other instances: start them, run them side by side, wait for their ends."""
