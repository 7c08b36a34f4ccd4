"""The shapes of answers, for the OpenAPI document. `engine.status.documents` makes the answers themselves."""
