"""The subcommands of `workflow` against a Studio elsewhere, over its HTTP API: REPRISE_URL and REPRISE_TOKEN."""
