"""Read what a complete instance returned."""

from __future__ import annotations

from typing import Any

from engine.declare.registry import workflows
from engine.models import Instance
from engine.values.errors import ErrorRecord, InstanceNotCompleteError
from engine.values.serialization import encode
from engine.values.serialization.envelope import STORED
from engine.values.states import InstanceStatus


def result(instance: Instance) -> Any:
    """Return the output of a complete instance as the type that its workflow is annotated to return.

    Raises InstanceNotCompleteError in every other status, UnknownWorkflowError if this code does not have the workflow,
    and InvalidValueError if its return type no longer accepts what is stored.
    """
    if instance.status != InstanceStatus.COMPLETE:
        kept = None if instance.error is None else ErrorRecord.from_json(instance.error)
        raise InstanceNotCompleteError(instance.workflow, instance.id, instance.status, kept)
    codec = workflows[instance.workflow].output
    return codec.decode(encode(instance.output, what="output", envelopes=STORED), "output")
