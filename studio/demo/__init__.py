"""Real work to watch: a database backup that is proven, and a release that goes from server to server."""
