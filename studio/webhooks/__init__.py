"""Webhooks in: deliveries of other systems, which start workflows and send events."""
