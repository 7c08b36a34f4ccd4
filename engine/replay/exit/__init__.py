"""How an instance leaves its worker: what decides that, and how it is written."""
