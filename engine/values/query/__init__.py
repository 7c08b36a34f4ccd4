"""The language of searches: `workflow:orders status:open params.region=eu started:>2h`, read without a database."""
