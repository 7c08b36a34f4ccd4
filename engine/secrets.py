"""Secrets in tests and scripts: read a stored value in plain text."""

from engine.declare.secrets import decrypted

__all__ = ["decrypted"]
