"""`manage.py workflow …`: one module per kind of subcommand, with its arguments and its texts.

`subcommands` lists them, `subcommand` says what one is and prints its answer. The answer is a document, which `--json`
prints and docs/command-line.md describes. `source` has it: `local` reads this project's database; a Studio elsewhere
is asked over HTTP. Only `local` needs Django.
"""
