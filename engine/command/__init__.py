"""`manage.py workflow …`: one module per kind of subcommand, with the engine's checks and audit trail.

`subcommands` lists them, `subcommand` says what one is and prints its answer. With `--json`, `output` builds the
documents for programs, which docs/command-line.md describes.
"""
