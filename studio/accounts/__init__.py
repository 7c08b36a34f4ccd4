"""Signing in and out, passwords, and the colour theme."""
