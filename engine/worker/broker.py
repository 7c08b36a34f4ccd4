"""The broker, by the name that a project's `Q_CLUSTER` gives."""

from engine.worker.cluster.broker import Broker

__all__ = ["Broker"]
