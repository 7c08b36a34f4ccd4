"""Two workflows that need a provider, for the story of a night in which it goes down."""
