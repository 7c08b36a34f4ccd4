"""`manage.py workflow …`: one module per subcommand, with the engine's checks and audit trail.

`subcommands` lists them, `terminal` prints their answers. With `--json`, `output` builds the documents for programs,
which docs/command-line.md describes.
"""
