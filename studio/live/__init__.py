"""The socket of a page, and its slow reconcile."""
