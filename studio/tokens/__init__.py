"""The page of tokens: making, listing and revoking them."""
