"""Signing in and out, passwords, and what a person prefers to see."""
