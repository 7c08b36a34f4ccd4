"""The web process: what a request passes before Django sees it, and what is logged."""
