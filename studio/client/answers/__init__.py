"""The shapes of answers: the documents that `reprise workflow … --json` prints, with their times as datetimes.

A later version of the Studio may add keys.
"""

from studio.client.answers.error_groups import Bar as Bar
from studio.client.answers.error_groups import ErrorGroup as ErrorGroup
from studio.client.answers.error_groups import ErrorGroupDetails as ErrorGroupDetails
from studio.client.answers.error_groups import ErrorGroupInstances as ErrorGroupInstances
from studio.client.answers.error_groups import ErrorGroupsPage as ErrorGroupsPage
from studio.client.answers.error_groups import LatestFailure as LatestFailure
from studio.client.answers.error_groups import Recovered as Recovered
from studio.client.answers.error_groups import Share as Share
from studio.client.answers.history import Action as Action
from studio.client.answers.history import ActionOn as ActionOn
from studio.client.answers.history import Attempt as Attempt
from studio.client.answers.history import Decision as Decision
from studio.client.answers.history import Event as Event
from studio.client.answers.history import EventsPage as EventsPage
from studio.client.answers.history import Generation as Generation
from studio.client.answers.history import LogLine as LogLine
from studio.client.answers.history import Record as Record
from studio.client.answers.history import Step as Step
from studio.client.answers.history import StepWithLogs as StepWithLogs
from studio.client.answers.instances import Batch as Batch
from studio.client.answers.instances import Instance as Instance
from studio.client.answers.instances import InstancesPage as InstancesPage
from studio.client.answers.instances import Listed as Listed
from studio.client.answers.instances import NewInstance as NewInstance
from studio.client.answers.instances import Relation as Relation
from studio.client.answers.instances import Searched as Searched
from studio.client.answers.instances import Sort as Sort
from studio.client.answers.instances import StartError as StartError
from studio.client.answers.instances import Whole as Whole
from studio.client.answers.messages import Request as Request
from studio.client.answers.messages import Sent as Sent
from studio.client.answers.operating import Drained as Drained
from studio.client.answers.operating import Health as Health
from studio.client.answers.operating import Me as Me
from studio.client.answers.operating import Worker as Worker
from studio.client.answers.operating import Workers as Workers
from studio.client.answers.schedules import Schedule as Schedule
from studio.client.answers.schedules import SchedulesPage as SchedulesPage
from studio.client.answers.steering import Deleted as Deleted
from studio.client.answers.steering import PlannedStep as PlannedStep
from studio.client.answers.steering import RestartPlan as RestartPlan
from studio.client.answers.steering import Steered as Steered
from studio.client.answers.values import JSON as JSON
from studio.client.answers.values import RecordedError as RecordedError
from studio.client.answers.workflows import PausedWorkflow as PausedWorkflow
from studio.client.answers.workflows import ResumedWorkflow as ResumedWorkflow
from studio.client.answers.workflows import Workflow as Workflow
from studio.client.answers.workflows import Workflows as Workflows
from studio.client.answers.workflows import WorkflowWithSchedules as WorkflowWithSchedules
