"""A large installation, made up: rows as the engine would have written them, filled in by COPY."""
