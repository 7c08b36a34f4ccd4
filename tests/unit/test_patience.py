"""The order of the patiences on the way down; tests of processes run with shorter ones."""

from django.conf import settings

from engine.worker import shift
from engine.worker.cluster import sentinel, shift_task
from studio.supervisor import programs


def test_a_stop_leaves_bodies_their_grace_then_ends_what_is_stuck_before_the_supervisor_kills_it() -> None:
    last = programs.cluster(settings.ENVIRONMENT).grace
    assert (shift.GRACE_SECONDS, shift_task.STUCK_SECONDS, sentinel.STUCK_SECONDS, last) == (10, 12, 12, 15)
