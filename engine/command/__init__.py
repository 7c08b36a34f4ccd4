"""`manage.py workflow …`: a module a subcommand, with the engine's own checks and its audit trail.

`subcommands` names them all, `terminal` is where their answers go. A program reads `--json`: `output` makes its
documents, and docs/command-line.md describes them.
"""
