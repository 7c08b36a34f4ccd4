"""The shipped settings, of a cluster with a single worker."""

from studio.settings import *  # noqa: F403
from studio.settings import Q_CLUSTER

Q_CLUSTER |= {"workers": 1, "queue_limit": 1}
