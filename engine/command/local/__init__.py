"""Answers of subcommands from the database of this project, one module per kind of subcommand."""
