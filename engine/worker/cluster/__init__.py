"""The django-q2 cluster: its broker, its sentinel, and the tasks that run shifts."""
