"""The version of Reprise, as pyproject.toml has it."""

VERSION = "0.1.0"
