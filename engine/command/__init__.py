"""`manage.py workflow …`: a module a subcommand, with the engine's own checks and its audit trail.

`subcommands` names them all, `desk` is where their answers go. A program reads `--json`: its shapes are those that
`shapes` makes, and docs/command-line.md describes them.
"""
